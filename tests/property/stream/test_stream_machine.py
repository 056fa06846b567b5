"""The stream of a volatile group under random loss, repetition, reordering, deaths and changes of its views.

Whatever happens: what anybody delivered is one log, of which everybody has delivered a beginning; whoever takes over
has all of it; nothing is in it twice, and nobody's entries in another order than they were submitted in. No view is
forced here: when too many servers die, the stream stands still.

When it is over everything is healed. If enough servers are left, all who live must come to the same log, and what is
submitted then must be in it.
"""

from __future__ import annotations

import itertools
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from groupsvcd.core.stream.server import Server
from tests.property.stream.processes import NAMES, Clerk, Process

SEEDS, SEEDS_AT_ONCE = 240, 40
STEPS = 40

CONVERGED_WITHIN_ROUNDS = 60
"""Of half a second each, with every letter delivered in between."""


chances = st.integers(0, 1_000)
"""0: letters arrive in order, each once. Else the seed of what happens to them; large steps shrink badly."""

names = st.sampled_from(NAMES)
counts = st.integers(0, 3)


class StreamMachine(RuleBasedStateMachine):
    """Moves letters, kills processes and grants views; each rule is a little story."""

    def __init__(self) -> None:
        super().__init__()
        self.clerk = Clerk(3, 2, large_payloads=True)
        self.cuts: set[tuple[str, str]] = set()
        self.texts = itertools.count(1)
        self.dead: list[Process] = []

    @initialize(servers=st.integers(2, 4), k=st.integers(0, 4), large=st.booleans())
    def begin(self, servers: int, k: int, large: bool) -> None:
        """With a view that is active; k is what it is by default, unless drawn otherwise.

        With large payloads nothing is discarded that anybody lacks; without them only the servers are waited for.
        """
        self.clerk = Clerk(servers, k if 1 <= k <= servers else servers // 2 + 1, large_payloads=large)
        self.work(6)

    def work(self, rounds: int, chance: int = 0) -> None:
        """Letters on links that are not cut arrive, and what follows from them; the others wait."""
        clerk, rng = self.clerk, Random(chance)
        for _ in range(rounds):
            letters, clerk.bag = clerk.bag, []
            if chance:
                rng.shuffle(letters)
            for letter in letters:
                luck = rng.random() if chance else 1.0
                if (letter.sender[0], letter.to) in self.cuts or 0.1 < luck < 0.2:
                    clerk.bag.append(letter)
                if (letter.sender[0], letter.to) not in self.cuts and luck > 0.1:
                    clerk.deliver(letter)
            if chance % 2 == 0:
                clerk.answer_all()  # else the directory is slow, too

    def leader_says(self, count: int) -> None:
        """Who leads has something to say itself: so much is sure to be numbered, if not to become stable."""
        for leader in self.clerk.leaders()[:1]:
            for _ in range(count):
                leader.step(leader.submit, f"{next(self.texts)} of {leader.name}".encode())

    # --- The network ---

    @rule(deaf=st.sets(names), to=st.sets(names), whole=st.booleans(), said=counts, rounds=counts, chance=chances)
    def cut(self, deaf: set[str], to: set[str], whole: bool, said: int, rounds: int, chance: int) -> None:
        """Some do not hear some of the others; nobody is deaf: all is well again."""
        self.cuts = {(sender, name) for name in deaf for sender in to if sender != name}
        if whole:
            self.cuts |= {(name, sender) for sender, name in self.cuts}
        self.leader_says(said)
        self.work(rounds, chance)

    @rule(inward=st.booleans(), count=st.integers(1, 4), rounds=counts)
    def leader_is_cut_off_and_goes_on(self, inward: bool, count: int, rounds: int) -> None:
        """What it orders now nobody has but itself."""
        for leader in self.clerk.leaders()[:1]:
            others = set(NAMES) - {leader.name}
            self.cuts = {(leader.name, other) for other in others}
            if inward:
                self.cuts |= {(other, leader.name) for other in others}
            self.leader_says(count)
            self.work(rounds)

    @rule()
    def lose(self) -> None:
        """What waits on cut links is lost."""
        self.clerk.bag = [one for one in self.clerk.bag if (one.sender[0], one.to) not in self.cuts]

    @rule(seconds=st.sampled_from([0.03, 0.3, 1.2]), rounds=counts, chance=chances)
    def time_passes(self, seconds: float, rounds: int, chance: int) -> None:
        """What was not answered is said again."""
        self.clerk.tick(seconds)
        self.work(rounds, chance)

    @rule(at=st.integers(0, 99), fate=st.sampled_from(["deliver", "repeat", "lose"]))
    def one_letter(self, at: int, fate: str) -> None:
        """It overtakes the others, comes twice, or is lost."""
        bag = self.clerk.bag
        if bag:
            letter = bag[at % len(bag)] if fate == "repeat" else bag.pop(at % len(bag))
            if fate != "lose":
                self.clerk.deliver(letter)

    # --- Submissions ---

    @rule(name=names, large=st.booleans(), rounds=counts, chance=chances)
    def submit(self, name: str, large: bool, rounds: int, chance: int) -> None:
        """Somebody submits something new, by a letter to everybody, and says again what it had submitted before."""
        process = self.clerk.alive.get(name)
        if process is not None:
            text = f"{'large ' if large and self.clerk.large_payloads else ''}{next(self.texts)} of {name}"
            process.step(process.submit, text.encode())
            process.step(process.resend, 1)
            self.work(rounds, chance)

    # --- Views ---

    @rule(leader=counts, left_out=st.sets(names, max_size=2), rounds=st.integers(0, 7), said=counts, k=counts)
    def grant(self, leader: int, left_out: set[str], rounds: int, said: int, k: int) -> None:
        """To some that live, one of the active view among them; often nothing disturbs what follows.

        k is what it is by default, unless drawn as 1; then often the one that leads is to lead on.
        """
        clerk = self.clerk
        if clerk.survivors():
            servers = "".join(sorted({clerk.survivors()[0]} | (set(clerk.alive) - left_out)))
            goes_on = k == 1 and clerk.active.leader in servers and said % 2 == 0
            whom = clerk.active.leader if goes_on else servers[leader % len(servers)]
            clerk.grant(whom, servers, 1 if k == 1 else len(servers) // 2 + 1)
            self.work(rounds)
            self.leader_says(said)
            self.work(said)

    @rule(rounds=st.integers(0, 6), chance=chances)
    def grant_again(self, rounds: int, chance: int) -> None:
        """The name server repeats it."""
        self.clerk.repeat_grant()
        self.work(rounds, chance)

    @rule(at=st.integers(0, 99))
    def directory_answers(self, at: int) -> None:
        """One request is judged, or one answer arrives, in whatever order they come."""
        requests, confirmations = self.clerk.requests, self.clerk.confirmations
        waiting = len(requests) + len(confirmations)
        if waiting and at % waiting < len(requests):
            self.clerk.judge(requests.pop(at % waiting))
        elif waiting:
            self.clerk.confirm(confirmations.pop(at % waiting - len(requests)))

    # --- Deaths ---

    def enough_without(self, name: str) -> bool:
        """Whether the stream can still be recovered when this one is dead."""
        return self.clerk.successor([survivor for survivor in self.clerk.survivors() if survivor != name]) != ""

    @rule(name=names, anyhow=st.integers(0, 19), rounds=counts)
    def die_or_come_back(self, name: str, anyhow: int, rounds: int) -> None:
        """Seldom one too many. Who comes back is another process, inserted by whoever leads or thinks it does."""
        if name in self.clerk.alive:
            if not anyhow or self.enough_without(name):
                self.dead.append(self.clerk.alive[name])
                self.clerk.kill(name)
        elif leaders := self.clerk.leaders():
            leader = leaders[anyhow % len(leaders)]
            self.clerk.start(name, list(leader.host.delivered), leader.replica.log.accepted)
        self.work(rounds)

    # --- What always holds --------------------------------------------------------------------------

    @invariant()
    def what_was_delivered_is_one_log(self) -> None:
        """B3, B4, B6: also what the dead had delivered."""
        clerk = self.clerk
        for process in (*self.dead, *clerk.alive.values()):
            delivered = process.delivered
            common = min(len(delivered), len(clerk.canonical))
            assert clerk.canonical[:common] == delivered[:common]
            if len(delivered) > common:
                clerk.canonical = delivered
        self.dead.clear()

    @invariant()
    def each_origin_is_in_its_own_order_and_nothing_is_there_twice(self) -> None:
        """B1, B5."""
        numbers: dict[tuple[str, int], int] = {}
        for origin, incarnation, n, _ in self.clerk.canonical:
            if origin:
                assert n == numbers.get((origin, incarnation), 0) + 1
                numbers[origin, incarnation] = n

    @invariant()
    def logs_of_one_epoch_are_beginnings_of_one_another(self) -> None:
        """That is why an entry needs no epoch of its own."""
        by_epoch: dict[int, list[tuple[str, int, int, int]]] = {}
        for process in self.clerk.alive.values():
            log, epoch = process.log, process.replica.log.accepted
            longest = by_epoch.setdefault(epoch, log)
            common = min(len(log), len(longest))
            assert longest[:common] == log[:common]
            if len(log) > common:
                by_epoch[epoch] = log

    @invariant()
    def promises_and_stable_numbers_make_sense(self) -> None:
        """L3: nobody accepts what it has promised to refuse; nobody delivers what it does not have."""
        for process in self.clerk.alive.values():
            replica, role = process.replica, process.role
            assert replica.delivered == len(process.host.delivered)
            assert replica.log.base <= replica.delivered <= replica.stable <= replica.log.last
            if isinstance(role, Server):
                assert replica.log.accepted <= role.promised

    # --- The end ------------------------------------------------------------------------------------

    def teardown(self) -> None:
        """Nobody dies any more and nothing is lost: all who live have the same log, and it goes on."""
        clerk = self.clerk
        self.cuts.clear()
        successor = clerk.successor(clerk.survivors())
        if not successor:
            return
        last = []
        for round_number in range(CONVERGED_WITHIN_ROUNDS):
            if round_number == 0:
                clerk.grant(successor, "".join(clerk.survivors()), 1)
            self.work(6)
            if round_number == 10:
                for process in clerk.alive.values():
                    process.step(process.submit, f"last of {process.name}".encode())
                    last.append((*process.node, len(process.outbox)))
            for process in clerk.alive.values():
                if process.outbox:
                    process.step(process.resend, 1)
            clerk.tick(0.5)
            self.what_was_delivered_is_one_log()
            if last and self.has_converged(last):
                break
        assert self.has_converged(last)
        self.each_origin_is_in_its_own_order_and_nothing_is_there_twice()

    def has_converged(self, last: list[tuple[str, int, int]]) -> bool:
        """Whether everybody has delivered the same log, these entries in it."""
        logs = [process.delivered for process in self.clerk.alive.values()]
        return all(log == logs[0] for log in logs) and {*last} <= {entry[:3] for entry in logs[0]}


StreamMachine.TestCase.settings = settings(stateful_step_count=40)
TestStreamMachine = StreamMachine.TestCase


def _some(rng: Random, most: int) -> set[str]:
    return set(rng.sample(NAMES, rng.randint(0, most)))


def _one_step(machine: StreamMachine, rng: Random) -> None:
    """One of the rules, each as often as it is worth; letters are in disorder half the time."""
    chance = rng.choice((0, rng.randint(1, 1_000)))
    few = rng.randint(0, 3)
    kind = rng.choices(range(9), (4, 3, 2, 3, 2, 4, 5, 2, 3))[0]
    if kind == 0:
        machine.cut(_some(rng, 2), _some(rng, 4), rng.random() < 0.5, few, rng.randint(0, 3), chance)
    elif kind == 1:
        machine.leader_is_cut_off_and_goes_on(rng.random() < 0.5, 1 + few, rng.randint(0, 3))
    elif kind == 2:
        machine.lose()
    elif kind == 3:
        machine.time_passes(rng.choice((0.03, 0.3, 1.2)), few, chance)
    elif kind == 4:
        machine.one_letter(rng.randint(0, 99), rng.choice(("deliver", "repeat", "lose")))
    elif kind == 5:
        machine.submit(rng.choice(NAMES), rng.random() < 0.5, few, chance)
    elif kind == 6:
        machine.grant(rng.randint(0, 3), _some(rng, 2), rng.randint(0, 7), few, rng.randint(0, 3))
    elif kind == 7:
        rng.choice((machine.grant_again, lambda *_: machine.directory_answers(few)))(few, chance)
    else:
        machine.die_or_come_back(rng.choice(NAMES), rng.randint(0, 19), few)


def play(seed: int) -> None:
    """One history."""
    rng = Random(seed)
    machine = StreamMachine()
    machine.begin(rng.randint(2, 4), rng.choice((0, 0, 1, 4)), rng.random() < 0.5)
    for _ in range(STEPS):
        _one_step(machine, rng)
        machine.what_was_delivered_is_one_log()
        machine.logs_of_one_epoch_are_beginnings_of_one_another()
        machine.promises_and_stable_numbers_make_sense()
    machine.each_origin_is_in_its_own_order_and_nothing_is_there_twice()
    machine.teardown()


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_AT_ONCE))
def test_long_histories_with_weighted_rules(first: int) -> None:
    """B1, B3 to B6, L1, L3, L4. The same rules, drawn so that most runs see several views."""
    for seed in range(first, first + SEEDS_AT_ONCE):
        try:
            play(seed)
        except Exception as error:
            error.add_note(f"play({seed}) shows it again")
            raise
