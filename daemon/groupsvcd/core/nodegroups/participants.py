"""Who on this node takes part in one group, and the machine that one of them brought.

Programs come and go while the node carries the group. Who asks for another group than this one is turned away
(``prescreen``); who wants what came before is given that first (``backlog``), and meanwhile a stand-in has its place
among the ``users``. The node carries the group for all of them, and leaves it when nobody is left.

A machine is told what was delivered by its user. If the group was carried here before there was one, as after a
restart, it begins with the checkpoint of our own copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .backlog import Backlogs
from .phases import Phase
from .prescreen import problem_with
from .roll import decode_checkpoint
from .user import GROUP_EXISTS, NO_SUCH_GROUP, NOW, Application, Form, Machine, User, WhyNot

if TYPE_CHECKING:
    from .node_group import NodeGroup

LAGGED = "lagged: entries that were not delivered here are no longer kept"


class Participants:
    """The programs of one node in one group."""

    __slots__ = ("_group", "_machine_user", "applications", "backlogs", "machine", "users")  # a node has thousands

    def __init__(self, group: NodeGroup) -> None:
        self._group = group
        self.users: list[User] = []
        self.applications: list[Application] = []  # those of the users, in the same order
        self.backlogs = Backlogs(group)
        self.machine: Machine | None = None
        self._machine_user: User | None = None  # whose it is

    # --- Coming ---

    def add(self, application: Application) -> None:
        """Somebody takes part, if the group is what it asked for."""
        group = self._group
        brought = [other.machine for other in self.applications if other.machine is not None]
        present = self.machine or (brought[0] if brought else None)  # perhaps it waits for its user to have joined
        problem = self._problem_with(application, present) if group.id else None
        if problem is not None:
            group.turn.mark("group-prescreened")
            self._refuse(application, *problem)
            return
        self.users.append(application.user)
        self.applications.append(application)
        if group.seat is None and group.phase is not Phase.RETURNING and self.machine is None:
            self._bring(application)
        if group.phase is Phase.CARRYING:
            self._tell_joined(application)

    def _bring(self, application: Application) -> None:
        if application.machine is not None:
            self.machine, self._machine_user = application.machine, application.user

    def set_machine_aside(self) -> None:
        """It is to apply what comes once its user has joined."""
        self.machine = self._machine_user = None

    def _problem_with(
        self, application: Application, present: Machine | None, formed_for: Sequence[Application] = ()
    ) -> tuple[WhyNot, str] | None:
        """Why this one cannot take part in the group, which is there."""
        if application.form is Form.ONLY and application not in formed_for:
            return "group exists", GROUP_EXISTS
        text = problem_with(application, self._group.settings, present)
        return ("attributes mismatch", text) if text else None

    @property
    def former(self) -> Application | None:
        """The first that wants the group formed."""
        return next((application for application in self.applications if application.form is not Form.NEVER), None)

    @property
    def only_form(self) -> bool:
        """Whether nobody wants to know of a group that is there."""
        return self.applications != [] and all(one.form is Form.ONLY for one in self.applications)

    def there_is_no_group(self) -> None:
        """Certainly: who only wanted to find it takes no part."""
        for application in [one for one in self.applications if one.form is Form.NEVER]:
            self._turn_away(application, "no such group", NO_SUCH_GROUP)

    def prescreen(self, formed_for: Sequence[Application] = ()) -> None:
        """It is known what the group is: who asked for another one does not take part in it."""
        owner_first = sorted(self.applications, key=lambda application: application.user is not self._machine_user)
        for application in owner_first:
            present = self.machine if application.user is not self._machine_user else None
            problem = self._problem_with(application, present, formed_for)
            if problem is not None:
                self._group.turn.mark("group-prescreened")
                self._turn_away(application, *problem)

    def tell_joined(self) -> None:
        """The node is a member."""
        for application in tuple(self.applications):
            if application in self.applications:  # else one that was told before has taken it out
                self._tell_joined(application)

    def _tell_joined(self, application: Application) -> None:
        if application.since != NOW:
            self.backlogs.begin_earlier(application)
            return
        group, user = self._group, application.user
        is_late = self.machine is None and application.machine is not None
        user.joined(group.id, 0 if is_late else group.delivered, tuple(group.roll.members))
        if is_late and application in self.applications:  # it may have left at once
            self._bring(application)
            self._catch_up(user, self.machine)

    def _catch_up(self, user: User, machine: Machine | None) -> None:
        """The group was carried here without its machine, which has to apply what came since the checkpoint."""
        seat = self._group.seat
        assert seat is not None
        assert machine is not None
        self._group.turn.mark("group-machine-late")
        log = seat.replica.log
        if log.checkpoint_seq:
            machine.restore(log.checkpoint_seq, decode_checkpoint(log.checkpoint).application)
        entries = seat.replica.delivered_since(log.checkpoint_seq)
        if entries:
            user.delivered(log.checkpoint_seq + 1, entries)

    def restore(self, seq: int, state: bytes) -> None:
        """What we missed is no longer kept: the machine goes on from a checkpoint; the others have lost the group."""
        assert self.machine is not None
        self.machine.restore(seq, state)
        for application in [one for one in self.applications if one.user is not self._machine_user]:
            self.turn_away(application, LAGGED)

    # --- Going ---

    def has(self, user: User) -> bool:
        """Whether this one still takes part; it may leave whenever it is told something."""
        return any(application.user is user for application in self.applications)

    def turn_away(self, application: Application, reason: str) -> None:
        """This one cannot take part; unless it has gone meanwhile, as others are told that they cannot."""
        if application in self.applications:
            self.forget(application.user)
            application.user.lost(reason)

    def _turn_away(self, application: Application, why: WhyNot, reason: str) -> None:
        if application in self.applications:
            self.forget(application.user)
            self._refuse(application, why, reason)

    def _refuse(self, application: Application, why: WhyNot, reason: str) -> None:
        if application.refused is not None:
            application.refused(why)
        application.user.lost(reason)

    def forget(self, user: User) -> None:
        """This one takes part no longer."""
        position = [application.user for application in self.applications].index(user)
        self.backlogs.forget(self.users[position])
        del self.users[position], self.applications[position]
        if self._group.confirmations is not None:
            self._group.confirmations.forget(user)
        if user is self._machine_user:
            self.machine = self._machine_user = None  # nobody applies entries to it any more

    def forget_all(self) -> list[User]:
        """Nobody takes part any more; returns who did."""
        users, self.users, self.applications, self.backlogs = self.users, [], [], Backlogs(self._group)
        self.machine = self._machine_user = None
        self._group.forget_questions()
        return users
