"""A small table, commands over it, and how the end of a command is judged."""

import hashlib
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from attack_parts.forks import Done, Words, finish

METHODS: dict[str, Words] = {
    "decoys": ("--iterations", 400, "--q", 20),
    "permutations": ("--iterations", 60, "--q", 20, "--permutations", 9),
    "trees": ("--iterations", 300, "--q", 20, "--judge", "probe", "--save-trees", "--bootstrap"),
    "sensitivity": ("--iterations", 200, "--q", 20, "--closing", "sensitivity"),
    "prs": ("--method", "prs", "--iterations", 120),
    "less": ("--method", "less", "--iterations", 300),
    "rase": ("--method", "rase", "--iterations", 24, "--candidates", 60, "--rounds", 3),
    "rs": ("--method", "rs", "--iterations", 300, "--q", 20, "--judge", "positive"),
    "knn": ("--model", "knn", "--iterations", 40, "--q", 10),
}
NETWORKS: dict[str, Words] = {
    "genie3": ("--trees", 20),
    "srs": ("--method", "srs", "--trees", 100),
    "prs": ("--method", "prs", "--epochs", 3, "--models", 4, "--folds", 3),
    "joint": ("--method", "prs", "--joint", "0.001", "--epochs", 3, "--models", 4, "--folds", 3),
}
_MEASURED = re.compile(
    r"\d[\d.,]* (?:s|ms|min|h) of work|peak memory \d+ MB|on disk +[\d.]+ \w+"
    r"|\"(?:peak_rss_mb|seconds\w*|store_nbytes)\": [\d.e-]+"
)


@dataclass
class Tally:
    """What a campaign did, and what broke."""

    counts: dict[str, int] = field(default_factory=dict)
    breaks: list[str] = field(default_factory=list)
    measures: dict[str, float] = field(default_factory=dict)
    only: tuple[str, ...] = ("",)

    def add(self, what: str, n: int = 1) -> None:
        """Count something."""
        self.counts[what] = self.counts.get(what, 0) + n

    def asks_for(self, thing: str) -> bool:
        """Return whether a thing is among those to be attacked."""
        return any(text in thing for text in self.only)


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
