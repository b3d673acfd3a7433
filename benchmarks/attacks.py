"""The campaign of attacks: kills, damaged files, places that refuse.

``python benchmarks/attacks.py kills faults places --each 20`` repeats it, prints what was done and
every break, and ends with status 1 if there was one. ``docs/reliability.md`` says what was found.
"""

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path

from attack_parts.faults import faults
from attack_parts.ground import Tally
from attack_parts.kills import kills
from attack_parts.places import places

CAMPAIGNS = {"kills": kills, "faults": faults, "places": places}


def main() -> None:
    """Run the campaigns asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("campaigns", nargs="*", choices=[*CAMPAIGNS, []], default=[*CAMPAIGNS])
    parser.add_argument("--each", type=int, default=20, help="attacks on each thing")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    broken = False
    for name in asked.campaigns:
        tally = Tally()
        try:
            with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
                Path(folder).chmod(0o755)
                CAMPAIGNS[name](tally, Path(folder), asked.each, asked.seed)
        finally:  # when it is ended from outside, too
            print(json.dumps({"campaign": name, **vars(tally)}, indent=2), flush=True)
        broken |= bool(tally.breaks)
    sys.exit(broken)


if __name__ == "__main__":
    main()
