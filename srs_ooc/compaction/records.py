"""What is on disk of a compaction: one small JSON file for each fold that is done, and the whole.

A file appears complete or not at all. Records made otherwise than asked for (another length of the
run, other folds) lie in another folder, so nothing is ever taken for what it is not.
"""

import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from srs_ooc.base.errors import RunError
from srs_ooc.runs.ledger_verify import Checked, verify_run

_Kind = TypeVar("_Kind")

_FOLDER, _WHOLE, _CRC = "compact", "whole.json", "crc"
VERSION = 1
"""Of the method: records of another one are not used."""


@dataclass
class FoldRecord:
    """What the whole procedure on all rows but those of one fold came to.

    Attributes
    ----------
    repeat, fold : int
        From 0.
    n_selected : int
        Features that the selection found without the fold's rows.
    order : list of int
        Stored positions: the set of k features is the first k.
    scores : dict of str to float
        How well the first k predict the fold's rows, by k.
    """

    repeat: int
    fold: int
    n_selected: int
    order: list[int]
    scores: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class WholeRecord:
    """What the procedure on all rows came to.

    Attributes
    ----------
    n_selected : int
        Features the run selected.
    order : list of int
        Stored positions: the set of k features is the first k.
    stand_ins : dict of str to list of int
        Stored positions of those that can stand in for a feature of the order.
    """

    n_selected: int
    order: list[int]
    stand_ins: dict[str, list[int]]


class Records:
    """The records of one compaction of a run.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @staticmethod
    def folder_of(run: Path, n_iterations: int, n_folds: int) -> Path:
        """Return where the records of a run of so many iterations and so many folds lie.

        More repeats, and other sizes, are added to those that are there.
        """
        return run / _FOLDER / f"v{VERSION}-{n_iterations}-iterations-{n_folds}-folds"

    def fold(self, repeat: int, fold: int) -> FoldRecord | None:
        """Return the record of a fold, None if it is not done."""
        return _read(self.folder / _fold_name(repeat, fold), FoldRecord)

    def keep_fold(self, record: FoldRecord) -> None:
        """Keep the record of a fold, in place of the one there was."""
        self._write(_fold_name(record.repeat, record.fold), asdict(record))

    def run_of(self, repeat: int, fold: int) -> Path:
        """Return where the run of a fold is done."""
        return self.folder / f"repeat-{repeat + 1}-fold-{fold + 1}.run"

    def whole(self) -> WholeRecord | None:
        """Return the record of all rows, None if it is not done."""
        return _read(self.folder / _WHOLE, WholeRecord)

    def keep_whole(self, record: WholeRecord) -> None:
        """Keep the record of all rows."""
        self._write(_WHOLE, asdict(record))

    def _write(self, name: str, record: dict[str, Any]) -> None:
        scratch = self.folder / (name + ".partial")
        with scratch.open("w", encoding="utf-8") as file:
            json.dump(record | {_CRC: _crc_of(record)}, file)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(self.folder / name)


def verify_compactions(run: Path) -> Iterator[Checked]:
    """Check the records of a run's compactions, and the runs of folds under way.

    Yields
    ------
    Checked
        What was found whole, once it was.

    Raises
    ------
    RunError
        At the first that is damaged.
    """
    for folder in sorted((run / _FOLDER).glob("*/")):
        files = sorted(folder.glob("*.json"))
        for file in files:
            _read(file, WholeRecord if file.name == _WHOLE else FoldRecord)
        nbytes = sum(file.stat().st_size for file in files)
        yield Checked(f"records of compactions ({_FOLDER}/{folder.name})", len(files), nbytes)
        for fold in sorted(folder.glob("*.run")):
            yield from verify_run(fold)


def _read(file: Path, kind: type[_Kind]) -> _Kind | None:
    """Return a record; None if there is none, or one from before records had checksums."""
    try:
        record = json.loads(file.read_bytes())
        names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
        if record.keys() == names:
            return None
        crc = record.pop(_CRC)
        if record.keys() != names or crc != _crc_of(record):
            raise ValueError("another")  # noqa: TRY301 (one way out)
        return kind(**record)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(f"{file}: could not be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RunError(
            f"{file}: expected a record as it was written, found another. It is damaged: delete "
            "it, and this part is done again."
        ) from error


def _crc_of(record: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(record, sort_keys=True).encode())


def _fold_name(repeat: int, fold: int) -> str:
    return f"repeat-{repeat + 1}-fold-{fold + 1}.json"
