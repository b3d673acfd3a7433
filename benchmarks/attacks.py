"""The campaign of attacks: kills, damaged files, places that refuse, caps on memory.

``python benchmarks/attacks.py kills faults places caps --each 20`` repeats it, prints what was done
and every break, and ends with status 1 if there was one. ``--only TEXT`` attacks only what has TEXT
in its name, so that the campaign can be run in parts. ``docs/reliability.md`` says what was found.
"""

import argparse
import importlib
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

CAMPAIGNS = ("kills", "faults", "places", "caps")


def main() -> None:
    """Run the campaigns asked for, each in a process of its own: this one stays small."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("campaigns", nargs="*", choices=[*CAMPAIGNS, []], default=[*CAMPAIGNS])
    parser.add_argument("--each", type=int, default=20, help="attacks on each thing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[""], metavar="TEXT",
                        help="only things with one of these texts in their names")  # fmt: skip
    asked = parser.parse_args()
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "COLUMNS": "200"}  # forks of one thread
    broken = False
    for name in asked.campaigns:
        pid = os.fork()
        if not pid:
            os._exit(_attack(name, asked.each, asked.seed, tuple(asked.only)))
        broken |= bool(os.waitpid(pid, 0)[1])
    sys.exit(broken)


def _attack(name: str, n_each: int, seed: int, only: tuple[str, ...]) -> int:
    from attack_parts import forks
    from attack_parts.ground import Tally

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    tally, is_done = Tally(only=only), False
    if name != "caps":  # whose commands' peaks must not begin at this one's
        forks.load()
    try:
        module = importlib.import_module(f"attack_parts.{name}")
        with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
            Path(folder).chmod(0o755)
            getattr(module, name)(tally, Path(folder), n_each, seed)
        is_done = True
    finally:  # when it is ended from outside, too
        found = {"campaign": name, "finished": is_done, "total": sum(tally.counts.values())}
        print(json.dumps(found | vars(tally), indent=2), flush=True)
    return int(bool(tally.breaks))


if __name__ == "__main__":
    main()
