"""The campaign of attacks: kills, stops, damage, places that refuse, caps, values, a cluster.

``python benchmarks/attacks.py --journal attacks.jsonl`` does all of it, and notes each attack in
the journal as it ends: the same command again goes on where it was stopped, and tries again what
broke. It prints every break and the table of what was done, and ends with status 1 if anything
broke. Give campaigns to do these only; ``--only TEXT`` attacks only what has TEXT in its name.
``docs/reliability.md`` says what was found.
"""

import argparse
import importlib
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path

CAMPAIGNS = (
    "kills", "stops", "faults", "overwrites", "places", "servers", "caps", "values", "cluster",
)  # fmt: skip


def main() -> None:
    """Run the campaigns asked for, each in a process of its own: this one stays small."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("campaigns", nargs="*", choices=[*CAMPAIGNS, []], default=[*CAMPAIGNS])
    parser.add_argument("--each", type=int, default=20, help="attacks on each thing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--journal", type=Path, help="file of what is done; none is kept if not given"
    )
    parser.add_argument("--only", nargs="*", default=[""], metavar="TEXT",
                        help="only things with one of these texts in their names")  # fmt: skip
    asked = parser.parse_args()
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "COLUMNS": "200"}  # forks of one thread
    with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
        journal = (asked.journal or Path(folder) / "journal").resolve()
        ends = [_in_child(name, journal, asked) for name in asked.campaigns]
        from attack_parts.ground import summary

        print(summary(journal))
    sys.exit(any(ends))


def _in_child(name: str, journal: Path, asked: argparse.Namespace) -> int:
    pid = os.fork()
    if not pid:
        status = 1
        try:
            status = _attack(name, journal, asked)
        except Exception:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)
    return os.waitpid(pid, 0)[1]


def _attack(name: str, journal: Path, asked: argparse.Namespace) -> int:
    from attack_parts import forks
    from attack_parts.ground import Tally, noted_in

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    tally = Tally(name, journal, asked.seed, tuple(asked.only))
    if name != "caps":  # whose commands' peaks must not begin at this one's
        forks.load()
    part = {"servers": "places", "stops": "kills"}.get(name, name)
    module = importlib.import_module(f"attack_parts.{part}")
    with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
        Path(folder).chmod(0o755)
        getattr(module, name)(tally, Path(folder), asked.each)
    return any(n["breaks"] for n in noted_in(journal).values() if n["campaign"] == name)


if __name__ == "__main__":
    main()
