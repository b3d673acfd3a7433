"""What a method answers: selected features, and all features by rank."""

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Answer:
    """Source positions; ``reason`` says why there is no answer."""

    selected: Sequence[int]
    ranking: Sequence[int]
    reason: str | None = None

    @classmethod
    def failed(cls, reason: str) -> "Answer":
        """Return that there is no answer."""
        return cls((), (), reason=reason)


def read_answer(folder: Path) -> Answer:
    """Read what ``peers.py`` wrote: ``selected.json``, and ``ranking.u4`` of all features."""
    ranking = array("I")
    ranking.frombytes((folder / "ranking.u4").read_bytes())
    return Answer(json.loads((folder / "selected.json").read_text()), ranking)


def last_line(file: Path) -> str:
    """Return the last line of a file of messages."""
    lines = file.read_text(errors="replace").strip().splitlines() if file.exists() else []
    return lines[-1] if lines else "no message"
