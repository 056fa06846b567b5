"""L7: nobody acts on a lease's end before the lease has ended.

The name server declares an incarnation *gone* when no lease of it can still run. Others take over then, so a
lease that runs on at that moment is one group in two places.
"""

from __future__ import annotations

from collections.abc import Iterator

from .eras import Era
from .lives import LIFE_OPS, Lives
from .verdict import Violation
from .views import TIME_SLACK


def l7(era: Era) -> Iterator[Violation]:
    """Lease safety, for each (node, incarnation) that a ``node_gone`` line names.

    At that moment no lease of it runs, its end (``until``, on the node's own clock) turned into harness time
    with rate and offset of the node's boot; and no ``lease`` line of a later moment has one either. A lease ends
    with its process (crash, halt) and with its incarnation (``down_learned``). Afterwards that incarnation sends
    no acknowledgement, and orders or announces nothing under an epoch below the one it was declared gone in.
    Its deliveries are not judged: a voter that was cut off may win an election with its old incarnation and
    learn its fate only from the log it recovers.
    """
    lives = Lives()
    runs_until: dict[tuple[str, int], float] = {}
    gone: dict[tuple[str, int], tuple[float, int]] = {}
    for line in era.of(*LIFE_OPS, "lease", "down_learned", "node_gone", "acknowledged", "ordered", "stable"):
        me = (line.node, line.inc)
        if line.op in LIFE_OPS or line.op == "down_learned":
            if line.op in LIFE_OPS:
                lives.see(line)
            for key in [key for key in runs_until if key[0] == line.node]:
                del runs_until[key]
        elif line.op == "lease":
            end = lives[line.node].harness_time(float(line.args["until"]))
            runs_until[me] = max(end, runs_until.get(me, end))
            if me in gone and end > gone[me][0] + TIME_SLACK:
                late = end - gone[me][0]
                yield Violation("L7", f"{line.node}/{line.inc} has a lease {late:.3f} s beyond its being gone", line.i)
        elif line.op == "node_gone":
            name = (str(line.args["name"]), int(line.args["inc"]))
            left = runs_until.get(name, line.t) - line.t
            if name not in gone and left > TIME_SLACK:
                text = f"{name[0]}/{name[1]} is declared gone while its lease runs {left:.3f} s more"
                yield Violation("L7", text, line.i)
            gone.setdefault(name, (line.t, line.epoch))
        elif me in gone and (line.op == "acknowledged" or line.epoch < gone[me][1]):
            text = f"{line.node}/{line.inc} is gone and still has {line.op} in epoch {line.epoch}"
            yield Violation("L7", text, line.i)
