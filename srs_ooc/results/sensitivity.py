"""How sensitive a run's trees are to each feature, as people and programs read it."""

from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from srs_ooc.base.frames import check_kind, frame_of
from srs_ooc.base.records import Step
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Place
from srs_ooc.ensemble.feature_sensitivity import (
    Asked,
    Sensitivities,
    SensitivityRecord,
    sensitivity,
)
from srs_ooc.results.progress import Progress, Shown
from srs_ooc.runs.settling import NamesOrFile, names_file


@dataclass(frozen=True)
class Sensitivity:
    """What altering each feature that a run's trees use does to what they say.

    Attributes
    ----------
    found : Sensitivities
        Scores, best first.
    """

    found: Sensitivities

    @property
    def facts(self) -> dict[str, Any]:
        """All keys of ``srs-ooc sensitivity --json`` but the features."""
        return self.found.facts

    @property
    def names(self) -> list[str]:
        """Names of the features, the largest loss first."""
        return [record.name for record in self.found.records()]

    def features(self, kind: str = "pandas", *, top: int | None = None) -> Any:
        """Return the features by score, with the columns of ``srs-ooc sensitivity --csv``.

        Parameters
        ----------
        kind : {'pandas', 'polars', 'records'}
            A DataFrame, or a list of dicts.
        top : int, optional
            Only the first so many.

        Raises
        ------
        UsageError
            If ``kind`` is not known, or its library is not installed.
        """
        check_kind(kind)
        return frame_of(kind, SensitivityRecord, islice(self.found.records(), top))

    def __repr__(self) -> str:
        facts = self.facts
        return (
            f"<Sensitivity of {facts['n_trees']} trees to {facts['n_features']} features, on "
            f"{facts['n_rows']} rows>"
        )


def measured(
    run: Path,
    store: Place | None,
    rows: NamesOrFile,
    flip: str,
    repeats: int,
    memory_mb: int,
    threads: int | None,
    progress: Progress,
) -> Sensitivity:
    """Return the sensitivity of a run's trees; ``rows`` as a path or names."""
    shown = Shown(progress)

    def watch(step: Step) -> None:
        shown.step(step)
        if shown.error is not None:
            raise shown.error

    with closing(shown), TemporaryDirectory(prefix="srs-ooc-") as scratch:
        file = names_file(rows, Path(scratch) / "rows", "rows")
        found = sensitivity(
            run,
            Asked(file, flip, repeats),
            memory_nbytes=memory_mb * MB,
            threads=threads,
            store=store,
            watch=watch,
        )
    return Sensitivity(found)
