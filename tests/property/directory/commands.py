"""Random commands from a small world, so that they meet each other: few nodes, groups, keys and numbers."""

from __future__ import annotations

from hypothesis import strategies as st

from groupsvcd.core.domain.commands import (
    ActivateView,
    AnyCommand,
    ContinueGroup,
    DropGroup,
    FormDomain,
    FormGroup,
    NodeDown,
    NodeGone,
    NodeUp,
    ProposeView,
    SetConfig,
    ViewStarted,
    VoterReplaced,
    encode_command,
)

NAMES = ("a", "b", "c", "d", "")
VOTERS = (("a", "da1"), ("b", "db1"), ("c", ""))
FORM = FormDomain(bytes(range(16)), VOTERS, {"domain": "test", "alive": "0.2"})

names = st.sampled_from(NAMES)
numbers = st.integers(0, 40)
incarnations = st.integers(0, 4)
state_ids = st.one_of(st.just(""), st.builds(lambda name, i: f"d{name}{i}", names, st.integers(1, 2)))
servers = st.one_of(st.tuples(names, incarnations), st.tuples(names, state_ids))
server_lists = st.lists(servers, max_size=4).map(tuple)
node_ids = st.tuples(names, incarnations)
attributes = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 4),
        "commit_k": st.integers(0, 4),
        "durable": st.booleans(),
        "on_quorum_lost": st.sampled_from(("wait", "continue", "dissolve", "")),
        "checkpoint_k": st.integers(0, 4),
        "delivery": st.sampled_from(("safe", "fast", "")),
    },
)

commands: st.SearchStrategy[AnyCommand] = st.one_of(
    st.just(FORM),
    st.builds(FormDomain, st.binary(min_size=15, max_size=16), st.just(VOTERS), st.just({})),
    st.builds(ViewStarted, st.integers(0, 9), names, st.just(VOTERS), st.integers(0, 3)),
    st.builds(NodeUp, names, incarnations, state_ids, st.just("tcp://h:1"), st.booleans()),
    st.builds(NodeDown, names, incarnations, st.booleans()),
    st.builds(NodeGone, names, incarnations),
    st.builds(FormGroup, st.sampled_from(("g", "h", "_g")), names, incarnations, attributes),
    st.builds(ProposeView, numbers, numbers, names, server_lists, st.integers(0, 3), node_ids),
    st.builds(ActivateView, st.lists(st.tuples(numbers, numbers), max_size=3).map(tuple)),
    st.builds(ContinueGroup, numbers, numbers, names, server_lists),
    st.builds(DropGroup, numbers, numbers, node_ids),
    st.builds(VoterReplaced, names, state_ids),
    st.builds(SetConfig, st.sampled_from(("k", "l", "_k", "")), st.text(max_size=3), numbers),
)

bodies = st.one_of(commands.map(encode_command), st.binary(max_size=12))
