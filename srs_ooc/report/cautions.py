"""Warnings of a report in plain words, each with what to do."""

from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote

from srs_ooc.base.text import counted
from srs_ooc.report.course import Draws
from srs_ooc.report.held_out import HeldOut
from srs_ooc.report.source import LISTED, Source
from srs_ooc.results.feature_record import FeatureRecord

FEW_DRAWS = 30
"""Draws of the median feature below which a ranking is mostly chance."""
FEW_ROWS = 5
"""Rows of a class below which it is called small."""
MANY = 1000
"""Selected features from which on nobody reads a list."""
UNSTEADY = 0.5


@dataclass(frozen=True)
class Caution:
    """A warning: what is so, and what to do."""

    title: str
    text: str


def cautions_of(
    source: Source, records: list[FeatureRecord], draws: Draws, held_out: HeldOut | None
) -> list[Caution]:
    """Return the warnings of a run, the gravest first."""
    return [
        *_of_verdict(source, records),
        *_of_draws(source, draws),
        *_of_rows(source),
        *_of_accuracy(source, held_out),
    ]


def _of_verdict(source: Source, records: list[FeatureRecord]) -> Iterator[Caution]:
    reading, run = source.reading, quote(str(source.ledger.run))
    if reading.is_provisional:
        yield Caution(
            "No verdict yet",
            f"{reading.n_iterations:,} iterations are done. Bring the run to its end with "
            f"`srs-ooc resume {run}`, then write this report again.",
        )
        return
    if reading.ranks_only:
        yield Caution(
            "A ranking without a level",
            "Check what you take from the top on rows held out, or run the same store with "
            "--judge decoy, which bounds the share of false features.",
        )
    elif not len(source.selected):
        why = None if reading.verdict is None else reading.verdict.why_none()
        yield Caution("Nothing was selected", why or _nothing(run))
    elif len(source.selected) >= MANY:
        yield Caution(
            f"{len(source.selected):,} features were selected",
            "Most of them carry the same information. The list puts near copies of a feature "
            f"late. `srs-ooc compact {run}` finds a few that predict about as well.",
        )
    if len(source.selected) > LISTED:
        yield Caution(
            f"Only the first {LISTED:,} are listed",
            f"All of them: `srs-ooc features {run} --selected --csv`.",
        )
    note = None if reading.verdict is None else reading.verdict.version_note()
    if note:
        yield Caution("Another version of the evidence", note)
    known = [r.stability for r in records if r.selected and r.stability is not None]
    n_unsteady = sum(1 for stability in known if stability < UNSTEADY)
    if n_unsteady:
        yield Caution(
            f"{counted(n_unsteady, 'selected feature')} with stability below {UNSTEADY:g}",
            "Batches of trees do not agree on their place. Sort by stability, and trust the steady "
            f"ones more; more iterations (`srs-ooc resume {run} --iterations T`) may settle them.",
        )


def _nothing(run: str) -> str:
    return (
        "No feature met the test of the judge. More iterations draw each feature more often "
        f"(`srs-ooc resume {run} --iterations T`); with few rows no number may be enough. A run "
        "with --judge decoy also tests each feature alone. The ranking below is no finding."
    )


def _of_draws(source: Source, draws: Draws) -> Iterator[Caution]:
    run = quote(str(source.ledger.run))
    if draws.median < FEW_DRAWS:
        n = source.reading.n_iterations
        more = -(-FEW_DRAWS * max(n, 1) // max(draws.median, 1))
        yield Caution(
            "Few draws",
            f"Half of the features were drawn {counted(draws.median, 'time')} or less"
            + (f", {draws.n_never:,} of them never" if draws.n_never else "")
            + f". Ranks are mostly chance then. Go on: `srs-ooc resume {run} --iterations {more}`.",
        )
    elif draws.n_never:
        yield Caution(
            f"{counted(draws.n_never, 'feature')} never drawn",
            f"Nothing is known of them. More iterations: `srs-ooc resume {run} --iterations T`.",
        )


def _of_rows(source: Source) -> Iterator[Caution]:
    counts = dict(zip(*_class_counts(source), strict=True))
    small = {name: n for name, n in counts.items() if n <= FEW_ROWS}
    if small:
        shown = ", ".join(f"{name} ({n})" for name, n in list(small.items())[:5])
        more = f" and {len(small) - 5} more" if len(small) > 5 else ""
        yield Caution(
            f"{counted(len(small), 'class') if len(small) == 1 else f'{len(small)} classes'} of "
            f"{FEW_ROWS} rows or fewer",
            f"{shown}{more}. What sets so few rows apart is easily chance. Join classes that "
            "belong together, leave their rows out (--rows), or get more rows.",
        )
    if "groups" in source.manifest.row_columns:
        yield Caution(
            "Rows come in groups",
            "p-values of single features take rows one by one: they are no evidence here, and no "
            "feature is called marginally significant.",
        )


def _class_counts(source: Source) -> tuple[list[str], list[int]]:
    classes = source.manifest.classes
    target = source.task.target.astype(int)
    return list(classes), [int((target == i).sum()) for i in range(len(classes))]


def _of_accuracy(source: Source, held_out: HeldOut | None) -> Iterator[Caution]:
    if held_out is None and len(source.selected):
        yield Caution(
            "Accuracy was not measured",
            f"`srs-ooc compact {quote(str(source.ledger.run))}` repeats the selection without some "
            "rows and predicts them; write this report again after it.",
        )
