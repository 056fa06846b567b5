"""Groups that this process has carried and carries no longer.

Two programs of D have a group formed. The first answer comes, D carries the group, it ends and is dropped. Then the
answer to the second one comes: formed, and led by D. If D believed that, it would begin the group anew, from its first
entry on and in the same epoch, and there is no such group any more. The same with a grant that is a minute old.

So D remembers, and forgets a group when nothing that was asked before its end can be answered any more: what is asked
after it is judged by a directory that has dropped the group, or has somebody else lead it. Without that D would
remember every lock that its programs ever had.
"""

from __future__ import annotations

from ..domain.requests import Requests


class CarriedOnce:
    """The groups of one process, by id."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._ended: dict[int, int] = {}  # when: the newest command of then

    def __contains__(self, group_id: int) -> bool:
        return group_id in self._ended

    def __len__(self) -> int:
        return len(self._ended)

    def remember(self, group_id: int, *, forgetting: bool) -> None:
        """It has just ended; ``forgetting`` is false while a question about a group waits for its answer."""
        while forgetting and self._ended:
            oldest = next(iter(self._ended))
            if self._ended[oldest] >= self._requests.oldest_n:
                break
            del self._ended[oldest]
        self._ended[group_id] = self._requests.last_n

    def start_again(self) -> None:
        """The numbers of commands begin anew."""
        self._ended = dict.fromkeys(self._ended, 0)
