"""Results, one JSON file per problem, width, seed, method and version."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from selection_parts.scores import Scores


@dataclass(frozen=True)
class Key:
    """What a result is of."""

    problem: str
    n_features: int
    seed: int
    method: str
    version: str

    @property
    def path(self) -> Path:
        """Place of the result inside a cache folder."""
        name = f"seed{self.seed}-{self.method}@{self.version}.json"
        return Path(f"{self.problem}-{self.n_features}") / name


@dataclass(frozen=True)
class Result:
    """One method on one table; ``scores`` is None where it was out of time."""

    key: Key
    seconds: float
    cpu_seconds: float
    peak_mb: float
    scores: Scores | None


class Cache:
    """A folder of results.

    Parameters
    ----------
    folder : Path
        Made when the first result is put there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def has(self, key: Key) -> bool:
        """Tell whether a result is there."""
        return (self.folder / key.path).exists()

    def put(self, result: Result) -> None:
        """Keep a result; the file appears complete or not at all."""
        path = self.folder / result.key.path
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}.part")
        scratch.write_text(json.dumps(asdict(result), indent=1) + "\n")
        scratch.replace(path)

    def results(self) -> Iterator[Result]:
        """Yield all results."""
        for path in sorted(self.folder.glob("*/*.json")):
            record = json.loads(path.read_text())
            key = Key(**record.pop("key"))
            scores = Scores(**record["scores"]) if record["scores"] else None
            yield Result(key, record["seconds"], record["cpu_seconds"], record["peak_mb"], scores)
