"""A small table, commands over it, and how the end of a command is judged."""

import contextlib
import hashlib
import json
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from attack_parts.forks import Done, Words, finish

Key = tuple[str, str, int, int]
"""Campaign, thing, number and seed of an attack."""

METHODS: dict[str, Words] = {
    "tests": ("--iterations", 400, "--q", 20),
    "trees": ("--iterations", 300, "--q", 20, "--judge", "probe", "--save-trees", "--bootstrap"),
    "sensitivity": ("--iterations", 200, "--q", 20, "--closing", "sensitivity"),
    "prs": ("--method", "prs", "--iterations", 120),
    "less": ("--method", "less", "--iterations", 300),
    "rase": (
        "--method",
        "rase",
        "--iterations",
        24,
        "--with",
        "candidates=60",
        "--with",
        "rounds=3",
    ),
    "rs": ("--method", "rs", "--iterations", 300, "--q", 20, "--judge", "positive"),
    "knn": ("--model", "knn", "--iterations", 120, "--q", 10),
}
NETWORKS: dict[str, Words] = {
    "genie3": ("--with", "trees=20"),
    "srs": ("--method", "srs", "--with", "trees=100"),
    "prs": ("--method", "prs", "--with", "epochs=3", "--with", "models=4", "--with", "folds=3"),
    "joint": (
        "--method",
        "prs",
        "--with",
        "joint=0.001",
        "--with",
        "epochs=3",
        "--with",
        "models=4",
        "--with",
        "folds=3",
    ),
}
_MEASURED = re.compile(
    r"\d[\d.,]* (?:s|ms|min|h) of work|peak memory \d+ MB|on disk +[\d.]+ \w+"
    r"|\"(?:peak_rss_mb|seconds\w*|store_nbytes)\": [\d.e-]+"
)


@dataclass
class Tally:
    """What attacks did and what broke, noted in a journal as each one ends.

    An attack that is in the journal and broke nothing is not done again.
    """

    campaign: str
    journal: Path
    seed: int = 0
    only: tuple[str, ...] = ("",)
    counts: dict[str, int] = field(default_factory=dict)
    breaks: list[str] = field(default_factory=list)
    closest: float = 0.0

    def __post_init__(self) -> None:
        noted = noted_in(self.journal)
        self._done = {key for key, note in noted.items() if not note["breaks"]}

    def add(self, what: str, n: int = 1) -> None:
        """Count something."""
        self.counts[what] = self.counts.get(what, 0) + n

    def left(self, thing: str, n: int = 1) -> list[int]:
        """Return the numbers of the attacks on a thing that are not done; none if not asked for."""
        if not any(text in thing for text in self.only):
            return []
        return [i for i in range(n) if (self.campaign, thing, i, self.seed) not in self._done]

    @contextmanager
    def attack(self, thing: str, i: int = 0) -> Iterator[Random]:
        """Note one attack as it ends; its chance is its own, whatever else is attacked."""
        self.counts, self.breaks, self.closest = {}, [], 0.0
        try:
            yield random_of(self.seed, f"{self.campaign} {thing} {i}")
        except RuntimeError as error:
            self.breaks.append(f"{thing}: {error}"[:500])
        date = time.strftime("%Y-%m-%d")
        note = {"campaign": self.campaign, "thing": thing, "i": i, "seed": self.seed, "date": date,
                "counts": self.counts, "breaks": self.breaks, "closest": self.closest}  # fmt: skip
        with self.journal.open("a") as file:
            file.write(json.dumps(note) + "\n")
        for text in self.breaks:
            print(f"broke: {self.campaign}, {text}", flush=True)


def noted_in(journal: Path) -> dict[Key, dict[str, Any]]:
    """Return the last note of each attack in a journal; a line that was cut short is none."""
    found = {}
    for line in journal.read_text().splitlines() if journal.exists() else ():
        with contextlib.suppress(ValueError):
            note = json.loads(line)
            found[note["campaign"], note["thing"], note["i"], note["seed"]] = note
    return found


def summary(journal: Path) -> str:
    """Return the table of what a journal holds, as ``docs/reliability.md`` has it."""
    notes = list(noted_in(journal).values())
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for note in notes:
        for what, n in note["counts"].items():
            head, _, part = what.partition(": ")
            of = counts.setdefault((note["campaign"], head), {})
            of[part] = of.get(part, 0) + n
    lines = ["| campaign | what was done | times |", "|---|---|---|"]
    for (campaign, head), of in counts.items():
        parts = ", ".join(f"{part} {n:,}" for part, n in of.items() if part)
        lines.append(f"| {campaign} | {head} | {sum(of.values()):,}{parts and f' ({parts})'} |")
    if closest := max((note["closest"] for note in notes), default=0.0):
        lines.append(f"| caps | closest peak, of its cap | {closest:.1%} |")
    broken = [note for note in notes if note["breaks"]]
    said = [f"{n:,} {what}" for what, n in (("attacks", len(notes)), ("that broke", len(broken)))]
    dates, seeds = (sorted({str(note[k]) for note in notes}) for k in ("date", "seed"))
    lines += ["", f"{', '.join(said)}; {', '.join(dates)}; seeds {', '.join(seeds)}"]
    return "\n".join([*lines, *(f"- {text}" for note in broken for text in note["breaks"])])


def random_of(seed: int, thing: str) -> Random:
    """Return the chance of attacks on one thing, whatever else is attacked."""
    return Random(f"{seed} {thing}")  # noqa: S311


def must(*words: str | Path | int) -> str:
    """Run a command that has to succeed; return what it printed."""
    done = finish(*words)
    if done.status != 0:
        raise RuntimeError(f"{words}: {done.status}: {done.err}")
    return done.out


def unclear(done: Done) -> str:
    """Return what is wrong with the end of a command that may fail; nothing if all is well."""
    if done.status is None:
        return "hangs"
    if done.status < 0:
        return f"signal {-done.status}"
    if "Traceback" in done.err or "Traceback" in done.out:
        return f"traceback: {(done.err + done.out).strip().splitlines()[-1][:200]}"
    if done.status not in (0, 2):
        return f"exit status {done.status}: {done.err[:200]}"
    if done.status == 2 and not (done.err.strip().splitlines() or [""])[-1].startswith("srs-ooc: "):
        return f"no message: {done.err[:200]!r}"
    return ""


def lasting(printed: str) -> str:
    """Return what was printed without what is measured anew each time."""
    return _MEASURED.sub("-", printed)


def table(folder: Path, n_rows: int = 60, n_features: int = 200, name: str = "t.csv") -> Path:
    """Write a table with a few relevant features."""
    random = Random(0)  # noqa: S311
    path = folder / name
    with path.open("w") as file:
        file.write(",".join([*(f"f{i}" for i in range(n_features)), "y"]) + "\n")
        for _ in range(n_rows):
            row = [round(random.gauss(0, 1), 4) for _ in range(n_features)]
            file.write(",".join([*map(str, row), "uv"[row[0] + row[1] > 0]]) + "\n")
    return path


def digest(path: Path) -> str:
    """Return a digest of all files of a folder, or of a file; "none" where nothing is."""
    if not path.exists():
        return "none"
    found = hashlib.sha256()
    files = [path] if path.is_file() else sorted(f for f in path.rglob("*") if f.is_file())
    for file in files:
        found.update(str(file.relative_to(path)).encode())
        found.update(file.read_bytes())
    return found.hexdigest()


def fresh(path: Path) -> Path:
    """Return a path where nothing is."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return path


def left_behind(folder: Path) -> list[str]:
    """Return the names of scratch that no command may leave once it ended well."""
    return [f.name for f in folder.iterdir() if "partial" in f.name or f.name.startswith(".")]
