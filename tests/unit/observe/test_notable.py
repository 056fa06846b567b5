"""The log tells people what matters, in words."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

import groupsvcd.core
import groupsvcd.io
from groupsvcd.core.effects import Journal
from groupsvcd.observe import notable

EVENTS = [
    (Journal("office", epoch=3, args={"phase": "won"}), "elected name server in epoch 3, now completing the directory"),
    (Journal("office", epoch=3, args={"phase": "open"}), "name server in epoch 3"),
    (Journal("office", epoch=3, args={"phase": "left", "reason": "yields to b"}),
     "no longer name server (epoch 3): yields to b"),
    (Journal("leader_known", epoch=3, args={"leader": "b"}), "b is name server in epoch 3"),
    (Journal("leader_lost", epoch=3, args={"leader": "b"}), "the name server b is silent or gone"),
    (Journal("node_up", args={"name": "b", "inc": 7}), "b is up, incarnation 7"),
    (Journal("node_down", args={"name": "b", "inc": 7}), "b is down, incarnation 7"),
    (Journal("node_gone", args={"name": "b", "inc": 7}), "b is gone, incarnation 7"),
    (Journal("isolated"), "suspended: this node has no lease any more"),
    (Journal("rejoined"), "in the domain, with a lease"),
    (Journal("down_learned"), "the others declared this node down; going on as a new incarnation"),
    (Journal("quorum_lost", group=10, seq=8, args={"name": "db"}),
     "group 'db' had lost its quorum and goes on with what was left of it: entries before 8 that were delivered may be"
     " missing"),
    (Journal("unwelcome", args={"name": "b", "reason": "because"}), "b may not join: because"),
    (Journal("drain", args={"stage": "gave up", "left": ["sessions: 2", "groups: 'db'"]}),
     "the time for the drain is over; left are sessions: 2; groups: 'db'"),
    (Journal("drain", args={"stage": "drained", "left": []}), "drained: nothing is left to hand over"),
    (Journal("drain", args={"stage": "leaving", "left": ["2 groups", "3 sessions"]}),
     "draining: sessions end and groups are left: 2 groups; 3 sessions"),
    (Journal("trouble", args={"text": "50 % of 100 %s"}), "50 % of 100 %s"),
    (Journal("client_admitted", args={"who": "user:7", "client": 3, "name": "app"}),
     "audit client_admitted who='user:7' client=3 name='app'"),
    (Journal("client_refused", args={"who": "user:7", "code": "hello"}),
     "audit client_refused who='user:7' code='hello'"),
    (Journal("key_admitted", args={"who": "key:n2", "door": "nodes"}), "audit key_admitted who='key:n2' door='nodes'"),
    (Journal("key_refused", args={"who": "", "why": "no key"}), "audit key_refused who='' why='no key'"),
    (Journal("access_denied", args={"who": "key:a", "verb": "send", "name": "db"}),
     "audit access_denied who='key:a' verb='send' name='db'"),
    (Journal("expel_asked", args={"who": "key:a", "name": "db", "missed": 4}),
     "audit expel_asked who='key:a' name='db' missed=4"),
    (Journal("token_made", args={"who": "user:7", "name": "n4", "until": 9}),
     "audit token_made who='user:7' name='n4' until=9"),
    (Journal("token_pending", args={"who": "user:7", "deed": "token_made", "name": "n4"}),
     "audit token_pending who='user:7' deed='token_made' name='n4'"),
    (Journal("token_used", args={"who": "token:x", "name": "n4"}), "audit token_used who='token:x' name='n4'"),
    (Journal("token_shown_again", args={"who": "token:x", "name": "n4"}),
     "audit token_shown_again who='token:x' name='n4'"),
    (Journal("token_refused", args={"who": "token:x", "name": "n5", "why": "another name"}),
     "audit token_refused who='token:x' name='n5' why='another name'"),
    (Journal("token_expired", args={"who": "token:x", "name": "n4"}), "audit token_expired who='token:x' name='n4'"),
    (Journal("token_revoked", args={"who": "user:7", "name": "n4", "what": "token"}),
     "audit token_revoked who='user:7' name='n4' what='token'"),
]  # fmt: skip


@pytest.mark.parametrize("event, words", EVENTS)
def test_what_matters_is_said(event: Journal, words: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        notable.tell(event)
    assert [words] == [record.getMessage() for record in caplog.records]


def test_everything_else_is_left_to_the_event_journal(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        notable.tell(Journal("delivered", seq=4))
    assert [] == caplog.records


def test_every_notable_event_exists_and_is_tried_here() -> None:
    core = "".join(path.read_text() for path in Path(groupsvcd.core.__path__[0]).rglob("*.py"))
    doors = "".join((Path(groupsvcd.io.__path__[0]) / name).read_text() for name in ("clients.py", "keys.py"))
    assert set(notable.NOTABLE) == {event.op for event, _ in EVENTS}
    for op in notable.AUDIT:
        assert re.search(rf'(record|record_stranger|Deed)\(\s*"{op}"', core + doors), op
    for op in notable.NOTABLE.keys() - notable.AUDIT.keys():
        assert f'journal("{op}"' in core or f'journal(\n            "{op}"' in core, op
