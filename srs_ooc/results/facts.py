"""What a report says in words: asked, found, warnings, how to repeat it; JSON and Markdown."""

import json
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from math import ceil
from shlex import quote
from typing import Any

import numpy as np

from srs_ooc import __version__
from srs_ooc.base.options import WordOrFile, flag_of, line_of
from srs_ooc.base.text import ceil_div, cell_text, counted, visible
from srs_ooc.ensemble.compaction import Curve
from srs_ooc.evidence.judges import PositiveJudge, ProbeJudge
from srs_ooc.evidence.rank_tests import CERTAIN
from srs_ooc.results.feature_record import held_text, lambda_text, size_text, why_none
from srs_ooc.results.ranking import grave_cautions
from srs_ooc.results.report import LISTED, Report, rounded
from srs_ooc.runs.inputs import digest
from srs_ooc.runs.spec import declared
from srs_ooc.store.arrays import OWN
from srs_ooc.store.manifest import hopeless

# Warnings of a report in plain words, each with what to do.

FEW_DRAWS = 30
"""Draws of the median feature below which a ranking is mostly chance."""
FEW_ROWS = 5
"""Rows of a class below which it is called small."""
MANY = 1000
"""Selected features from which on nobody reads a list."""
_NOTHING = (
    "No feature met the test of the judge. More iterations draw each feature more often "
    "(`srs-ooc resume {} --iterations T`); with few rows no number may be enough. A run with "
    "--judge tests also tests each feature alone. The ranking below is no finding."
)


def cautions_of(report: Report) -> list[tuple[str, str]]:
    """Return the warnings of a run, the gravest first: what is so, and what to do."""
    leaks = grave_cautions(report.reading, report.ledger, report.store)
    return [*leaks, *_of_verdict(report), *_of_draws(report), *_of_rows(report)]


def _of_verdict(report: Report) -> Iterator[tuple[str, str]]:
    reading, run = report.reading, quote(str(report.ledger.run))
    if reading.is_provisional:
        yield (
            "No verdict yet",
            f"{reading.n_iterations:,} iterations are done. Bring the run to its end with "
            f"`srs-ooc resume {run}`, then write this report again.",
        )
        return
    if reading.ranks_only:
        yield (
            "A ranking without a level",
            "Check what you take from the top on rows held out, or run the same store with "
            "--judge tests, which bounds the share of false features.",
        )
    elif not len(report.selected):
        why = None if reading.verdict is None else why_none(reading.verdict, report.spec.fdr)
        few = report.task.too_few(report.spec, report.plan.shape.n_candidates)
        cause = hopeless(report.manifest, report.task.target) or few
        yield ("Nothing was selected", cause or why or _NOTHING.format(run))
    elif len(report.selected) >= MANY:
        yield (
            f"{len(report.selected):,} features were selected",
            "Most of them carry the same information. The list puts near copies of a feature "
            f"late. `srs-ooc compact {run}` finds a few that predict about as well.",
        )
    if len(report.selected) > LISTED:
        yield (
            f"Only the first {LISTED:,} are listed",
            f"All of them: `srs-ooc features {run} --selected --csv`.",
        )


def _of_draws(report: Report) -> Iterator[tuple[str, str]]:
    run, (median, n_never) = quote(str(report.ledger.run)), report.draws
    by_tests = report.reading.verdict is not None
    if median < FEW_DRAWS:
        more = ceil_div(FEW_DRAWS * max(report.reading.n_iterations, 1), max(median, 1))
        never = f", {n_never:,} of them never" if n_never else ""
        what = "What trees propose to test beside others, and ranks without a q-value, are"
        yield (
            "Few draws",
            f"Half of the features were drawn {counted(median, 'time')} or less{never}. "
            f"{what if by_tests else 'Ranks are'} mostly chance then. Go on: `srs-ooc resume {run} "
            f"--iterations {more}`.",
        )
    elif n_never:
        yield (
            f"{counted(n_never, 'feature')} never drawn",
            f"{'They were tested alone' if by_tests else 'Nothing is known of them'}. More "
            f"iterations: `srs-ooc resume {run} --iterations T`.",
        )


def _of_rows(report: Report) -> Iterator[tuple[str, str]]:
    classes = report.manifest.classes
    counts = np.bincount(report.task.target.astype(int), minlength=len(classes)) if classes else ()
    small = {name: int(n) for name, n in zip(classes, counts, strict=True) if n <= FEW_ROWS}
    if small:
        shown = ", ".join(f"{name} ({n})" for name, n in list(small.items())[:5])
        more = f" and {len(small) - 5} more" if len(small) > 5 else ""
        yield (
            f"{counted(len(small), 'class') if len(small) == 1 else f'{len(small)} classes'} of "
            f"{FEW_ROWS} rows or fewer",
            f"{shown}{more}. So few rows show little that is not as easily chance. Join classes "
            "that belong together, leave their rows out (--rows), or get more rows.",
        )
    if "groups" in report.manifest.row_columns and report.spec.run.judge != "tests":
        yield (
            "Rows come in groups",
            "No p-value is shown: nothing here compares whole groups. A run with --judge tests "
            "does.",
        )


# What a report says in words: asked, found, how sure, and what is not claimed.


def answers_of(report: Report) -> dict[str, list[str]]:
    """Return what a reader asks first, with the sentences that answer it, the gist first."""
    found = "What comes first so far" if report.reading.is_provisional else "What was found"
    return {
        found: [*_found(report), _first(report)],
        "How sure": _surety(report),
        "How well it predicts": _prediction(report),
        "How stable it is over rows": _steadiness(report),
    }


def question_of(report: Report) -> str:
    """Return what was asked."""
    manifest = report.manifest
    kind = "a number" if report.task.is_regression else f"one of {len(manifest.classes)} classes"
    kind = kind if report.censored is None else "time to an event"
    names = ", ".join(report.spec.adjusts_for)
    beside = f" beside what {names} say of it" if names else ""
    return (
        f"Which of {report.reading.n_candidates:,} features say something about "
        f"{manifest.target_name} ({kind}){beside}?"
    )


def _found(report: Report) -> list[str]:
    verdict, reading, records = report.reading.verdict, report.reading, report.records
    if reading.is_provisional:
        return ["There is no verdict yet.", "What follows is a ranking so far."]
    if reading.ranks_only:
        return ["Features are ranked, and none is selected.", "There is no verdict, and no level."]
    n, level = len(report.selected), ""
    if report.spec.concludes:
        level = f" at level {report.spec.fdr}"
    if not n:
        return [f"No feature was selected{level}."]
    of = f"{n:,} of {report.reading.n_candidates:,} features {'was' if n == 1 else 'were'} selected"
    if verdict is None:
        return [f"{of}.", f"So says the test of judge {report.spec.run.judge}."]
    found = [f"{of}{level}."]
    if clusters := verdict.clusters_selected:
        found.append(f"They form {clusters} of correlated features.")
    n_alone = sum(1 for record in records if record.passes_alone)
    among = f" of the {len(records):,} listed" if len(records) < n else " of them"
    return [*found, f"A test of each feature alone finds {n_alone:,}{among}, too."]


def _first(report: Report) -> str:
    if not report.records:
        return "There is no feature to list."
    first = report.records[0]
    if first.q_value is not None:
        differs = [] if first.effect is None else [first.direction or "", size_text(vars(first))]
        alone = ["alone"] * bool(first.beside and differs)
        facts = [" ".join([*alone, *filter(None, differs[:1])]), *differs[1:]]
        facts = [*filter(None, facts), f"q-value {first.q_value:.2g}"]
    elif first.score is not None:
        facts = [f"score {first.score:.3g}"]
    else:
        facts = [f"drawn {counted(first.n_drawn, 'time')}"]
        if first.importance is not None:
            facts.insert(0, f"importance {first.importance:.3g}")
    verb = "comes first" if first.selected else "ranks first, but was not selected"
    verb += f", beside {first.beside}" if first.beside else ""
    return f"{first.name} {verb} ({', '.join(facts)})."


def _prediction(report: Report) -> list[str]:
    """Return how well the features predict rows held out, or what measures it."""
    if (curve := report.held_out) is None:
        does = "repeats the selection without some rows and predicts them"
        can = report.spec.learner.is_tree and report.inputs.validation is None
        return _unmeasured(report, "compact {}", does, can=can)
    task, size, ends = report.task, curve.smallest(), held_out_interval(report, curve)
    mean = float(curve.means[curve.sizes.index(size)])
    said, what = "{:.0%}", "of held-out rows right"
    if task.is_regression:
        said, what = "{:.2f}", "of the variance of held-out rows"
    if report.censored is not None:
        what = "of pairs of held-out rows in the order of their events (C-index)"
    interval = "" if ends is None else f" (95% interval {' to '.join(map(said.format, ends))})"
    predict = "1 feature predicts" if size == 1 else f"{size} features predict"
    found = [f"{predict} {said.format(mean)} {what}{interval}."]
    if not task.is_regression:
        largest = np.bincount(task.target.astype(int)).max() / task.n_rows
        found.append(f"The largest class alone: {largest:.0%}.")
    if curve.sizes[0] == 0:
        found.append(f"Of this covariates alone predict {said.format(float(curve.means[0]))}.")
    return [*found, "The whole selection was repeated without the rows of each fold."]


def held_out_interval(report: Report, curve: Curve) -> list[float] | None:
    """Return the 95% interval of the score on rows held out, of the set that is small enough."""
    n_rows = 0 if report.task.is_regression else report.task.n_rows
    ends = curve.interval(curve.smallest(), n_rows)
    return ends and rounded(np.array(ends))


def _steadiness(report: Report) -> list[str]:
    """Return what halves of the rows select, or what measures it."""
    if (halves := report.reading.halves) is None:
        does = "repeats the search on 20 halves of the rows"
        return _unmeasured(
            report, "resume {} --halves 20", does, can=report.spec.run.judge != "none"
        )
    often = sum(1 for record in report.records if 2 * (record.halves or 0) >= 1)
    return [
        f"{halves}.",
        f"Half of them or more select {often:,} of the {len(report.records):,} features listed. "
        "Most halves find less than all rows do.",
    ]


def _unmeasured(report: Report, command: str, does: str, *, can: bool) -> list[str]:
    """Return that nothing was measured, and the command that does it where there is one."""
    run = quote(str(report.ledger.run))
    how = f"`srs-ooc {command.format(run)}` {does}; write this report again after it."
    if not can or report.inputs.weights is not None:
        how = "With the options of this run it cannot be."
    elif report.reading.is_provisional:
        how = "The run has to be finished first."
    return ["Not measured.", how]


def _surety(report: Report) -> list[str]:
    """Return how sure the findings are."""
    spec, verdict = report.spec, report.reading.verdict
    if report.reading.is_provisional:
        return ["Nothing is sure before the verdict, which comes after the last iteration."]
    if verdict is not None:
        n = verdict.n_selected
        bound = ceil((0.999 * float(spec.fdr) + CERTAIN) * n)  # docs/evidence.md
        return [
            f"Of {n:,} selected expect at most {bound:,} to be false."
            if n
            else "That nothing was selected is no proof that nothing is there.",
            "The level bounds the share of false features on average over runs, not in each run. "
            f"{held_text(verdict, spec.fdr)}.",
            *(f"{said}; 1 is right." for said in [lambda_text(verdict.facts)] if said),
        ]
    if isinstance(spec.judging, ProbeJudge):
        return [
            "The judge compares each feature with one irrelevant column at a time "
            f"(better in {spec.judging.probe_min_wins} of more than "
            f"{spec.judging.probe_min_draws} draws). It bounds no share of errors."
        ]
    if isinstance(spec.judging, PositiveJudge):
        return ["The judge keeps any feature that ever helped a tree: noise does so, too."]
    return ["A rank orders features. It does not say from which place on they are noise."]


def not_claimed_of(report: Report) -> list[str]:
    """Return what does not follow from the report."""
    found = [
        "Not that a selected feature is a cause: one that only stands in for a cause (a correlated "
        "neighbour, a batch) is informative as well.",
        "Not that other features are irrelevant: with few rows much goes unseen, and so does what "
        "shows only beside others that were not looked at together.",
        "Not that plots, effects and q-values are as good on other rows: they come from those that "
        "were searched.",
    ]
    if report.spec.concludes:
        kept = [name for name in ("strata", "groups") if name in report.manifest.row_columns]
        given = f" (given were {' and '.join(kept)})" if kept else ""
        if report.spec.adjusts_for:
            given += (
                " where what covariates say of the target is the same, in the form that was fitted "
                "(curves, categories and products); effects, too, compare such rows"
            )
        found.append(
            f"Rows must be exchangeable for the level to hold{given}: batches, families and "
            "repeated samples break it."
        )
    return found


# How to repeat a run: commands, versions, fingerprints.

LIBRARIES = ("numpy", "scikit-learn", "numcodecs", "google-crc32c")


def _repeated(report: Report, files: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return what to paste into a shell to repeat a run, and what the commands do not say."""
    manifest = report.manifest
    said = [f"--iterations {report.reading.n_iterations}"]
    said.append(f"--memory-mb {report.status.memory_mb}")
    if report.spec.target != OWN:
        said.append(f"--target {quote(manifest.target_name)}")
    table = manifest.source.get("name")
    inferred = ", ".join(f"{what}: {found}" for what, found in manifest.inferred.items() if found)
    notes = [
        f"The store was made of {f'the table {table}' if table else 'a table in memory'}"
        f"{inferred and f' ({inferred})'}. A store made of the same table with the same options "
        "has the same fingerprint."
    ]
    options = declared()
    for name, value in report.spec.values().items():
        if value is None:
            continue
        kind = options[name].kind
        if isinstance(kind, WordOrFile) and value not in kind.words:
            notes.append(f"{flag_of(name)} names a file: {value}.")
            value = "FILE"  # noqa: PLW2901 (of which the identity has a digest)
        said.append(line_of(name, value))
    said += [line_of(name, "FILE") for name in files]
    notes += [f"{flag_of(name)} names {found}." for name, found in files.items()]
    store, run = quote(str(report.store.place)), quote(str(report.ledger.run.absolute()))
    again = quote(f"{report.ledger.run.name.removesuffix('.run')}-again.run")
    commands = [
        f"srs-ooc run {store} --out {again} {' '.join(said)}",
        f"srs-ooc features {run} --selected --csv",
    ]
    return commands, notes


def _versions() -> dict[str, str]:
    """Return the versions that write a report, by name."""
    found = {"srs-ooc": __version__, "Python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = "not installed"
    return found | {"system": f"{platform.system()} {platform.machine()}"}


def words_of(report: Report) -> dict[str, Any]:
    """Return all that a report says in words, by what it is."""
    spec, status, source = report.spec, report.status, report.manifest.source
    nothing = ("none", "all", digest(report.store.target_rows(), "rows"))
    given = {"exclude": spec.excluded, "rows": spec.rows, "validation_rows": spec.validation}
    files = {name: text for name, text in given.items() if text not in nothing}
    fingerprints = {"store": report.store.fingerprint}
    fingerprints |= {"target": spec.target} if spec.target != OWN else {}
    fingerprints |= {name.replace("_", "-"): text for name, text in files.items()}
    if isinstance(crc32 := source.get("crc32"), int):
        fingerprints["table (CRC-32)"] = f"{crc32:08x}"
    commands, notes = _repeated(report, files)
    return {
        "question": question_of(report),
        "answers": answers_of(report),
        "course": (
            f"Method {spec.run.method} searched {report.task.n_rows:,} rows of "
            f"{source.get('name') or report.store.place.name}, {spec.subspace_size:,} "
            f"features at a time, {report.reading.n_iterations:,} times. The run is "
            f"{status.state}: {status.seconds:.1f} s of work; memory: {status.memory}."
        ),
        "not_claimed": not_claimed_of(report),
        "cautions": cautions_of(report),
        "commands": commands,
        "notes": notes,
        "versions": _versions(),
        "fingerprints": fingerprints,
    }


# A report as JSON and as Markdown: the same without figures.

LISTED_IN_TEXT = 50
"""Features of the table in Markdown."""
_COLUMNS = (
    "rank", "name", "q_value", "direction", "measure", "effect", "low", "high", "score",
    "importance", "tree_agreement", "cluster", "n_drawn",
)  # fmt: skip


def json_of(report: Report) -> str:
    """Return a report as one JSON object."""
    curve, words = report.held_out, words_of(report)
    record = {
        "name": report.name,
        **{what: words[what] for what in ("question", "answers", "course", "not_claimed")},
        "cautions": [{"title": title, "text": text} for title, text in words["cautions"]],
        "features": report.records,
        "n_selected": report.n_selected,
        "status": report.status,
        "discoveries": {
            "points": report.points,
            "comes_last": report.spec.concludes,
            "n_selected": report.n_selected,
        },
        "qq": report.qq
        and dict(zip(("expected", "observed"), map(rounded, report.qq), strict=True)),
        "draws": dict(zip(("median", "n_never"), report.draws, strict=True)),
        "held_out": curve
        and {
            "sizes": curve.sizes,
            "scores": rounded(curve.means),
            "errors": rounded(curve.errors),
            "chosen": curve.smallest(),
            "interval": held_out_interval(report, curve),
            "n_folds": len(curve.scores),
            "is_regression": report.task.is_regression,
        },
        "repeat": {what: words[what] for what in ("commands", "notes", "versions", "fingerprints")},
    }
    return json.dumps(record, ensure_ascii=False, indent=1, default=vars) + "\n"


def markdown_of(report: Report) -> str:
    """Return a report as Markdown; names are escaped."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    words = words_of(report)
    yield from (f"# {_escaped(report.name)}", "", _escaped(words["question"]))
    for title, sentences in (
        *words["answers"].items(),
        ("What is not claimed", words["not_claimed"]),
        ("Warnings", [f"{title}. {text}" for title, text in words["cautions"]]),
    ):
        if sentences:
            yield from ("", f"## {title}", "", *(f"- {_escaped(s)}" for s in sentences))
    records = report.records
    yield from ("", "## Features", "", f"| {' | '.join(_COLUMNS)} |", "|" + "---|" * len(_COLUMNS))
    for record in records[:LISTED_IN_TEXT]:
        yield f"| {' | '.join(_escaped(cell_text(getattr(record, name))) for name in _COLUMNS)} |"
    if len(records) > LISTED_IN_TEXT:
        yield from ("", f"and {len(records) - LISTED_IN_TEXT:,} more.")
    if (curve := report.held_out) is not None:
        yield from ("", "## Accuracy on rows held out", "", "| features | score | error |")
        yield "|---|---|---|"
        scored = zip(curve.sizes, rounded(curve.means), rounded(curve.errors), strict=True)
        yield from (f"| {size} | {score} | {error} |" for size, score, error in scored)
    yield from ("", "## Time and memory", "", _escaped(words["course"]))
    yield from ("", "## How to repeat it", "", "```", *map(visible, words["commands"]), "```")
    yield from ("", *(f"- {_escaped(note)}" for note in words["notes"]))
    known = words["versions"] | words["fingerprints"]
    yield from (f"- {_escaped(name)}: {_escaped(value)}" for name, value in known.items())


def _escaped(text: str) -> str:
    # Backticks of commands stay; inside them nothing is escaped.
    parts = visible(text).replace("\n", " ").split("`")
    return "`".join(part if i % 2 and i + 1 < len(parts) else _plain(part)
                    for i, part in enumerate(parts))  # fmt: skip


def _plain(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\*_{}[]<>#|~$" else c for c in text)
