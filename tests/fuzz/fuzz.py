"""Garbage for everything that reads bytes of others. `make fuzz` runs it all.

    python tests/fuzz/fuzz.py --list
    python tests/fuzz/fuzz.py --seconds 60                     # each family in turn, 60 s together
    python tests/fuzz/fuzz.py snapshots -max_total_time=600    # one of them; the arguments behind it are libFuzzer's

A folder as the last argument keeps the corpus between runs. A finding is written to a file, whose name is printed; give
it as the last argument to see it again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import atheris

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "daemon")]

with atheris.instrument_imports(include=["groupsvc", "groupsvcd"]):
    from tests.fuzz.families import FAMILIES
    from tests.fuzz.family import Family
    from tests.fuzz.mutations import LONG_BYTES_MAX, mutated


def in_memory(content: bytes) -> str:
    """The path of a file that is gone with the process, since libFuzzer leaves without cleaning up."""
    file = os.memfd_create("seed")
    os.write(file, content)
    return f"/proc/self/fd/{file}"


def mutate(data: bytes, bytes_max: int, seed: int) -> bytes:
    """Half by what libFuzzer has learnt of the code, half by the forms."""
    if seed % 2:
        return mutated(data, Random(seed), bytes_max)
    found: bytes = atheris.Mutate(data, len(data))[:bytes_max]
    return found


def fuzz(family: Family, arguments: list[str]) -> None:
    """Until the arguments say stop."""
    for data in family.seeds():
        family.read(data)
    begin_with = ",".join(in_memory(data) for data in family.seeds())
    options = ["-keep_seed=1", f"-max_len={LONG_BYTES_MAX}", f"-seed_inputs={begin_with}", "-timeout=10"]
    atheris.Setup([sys.argv[0], *options, *arguments], family.read, custom_mutator=mutate)
    atheris.Fuzz()


def main() -> int:
    """One family, or one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", nargs="?", choices=[*FAMILIES])
    parser.add_argument("--list", action="store_true", help="what there is")
    parser.add_argument("--seconds", type=int, default=60, help="for all together")
    given, arguments = parser.parse_known_args()
    if given.list:
        for family in FAMILIES.values():
            print(f"{family.name:<10} {family.about}")
        return 0
    if given.family:
        fuzz(FAMILIES[given.family], arguments)
    each = max(1, given.seconds // len(FAMILIES))
    for name in FAMILIES:
        print(f"--- {name}, for {each} s", flush=True)
        ended = subprocess.run([sys.executable, __file__, name, *arguments, f"-max_total_time={each}"], check=False)
        if ended.returncode:
            return ended.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
