"""``srs-ooc features``, ``compare``, ``export``: a run's ranking, two side by side, its columns."""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import fields, make_dataclass
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from srs_ooc.base.budget import process_nbytes, total_nbytes
from srs_ooc.base.errors import RunError, StoreError, UsageError
from srs_ooc.base.text import MB, counted
from srs_ooc.base.urls import Place, place_of
from srs_ooc.cli import output
from srs_ooc.cli.output import FILE, TABLE_ROWS, Brief, say, write_records
from srs_ooc.results import ranking
from srs_ooc.results.feature_record import ScoredRecord
from srs_ooc.results.ranking import Ranking
from srs_ooc.results.standing import status_of
from srs_ooc.runs.halves import halves_of
from srs_ooc.runs.inputs import read_lines
from srs_ooc.runs.run import Run
from srs_ooc.runs.verdict import FeatureRecord, Verdict
from srs_ooc.store.opening import open_store

_COLUMNS = {
    "rank": 6, "name": 20, "selected": 8, "importance": 10, "n_drawn": 8, "p_better": 8,
    "entered": 8, "halves": 6,
}  # fmt: skip

_RANKED_COLUMNS = {"rank": 6, "name": 20, "score": 10, "importance": 10, "n_drawn": 8}

_ERROR_COLUMNS = {
    "rank": 6, "name": 20, "score": 10, "standard_error": 14, "n_drawn": 8, "importance": 10,
}  # fmt: skip

_VERDICT_COLUMNS = {
    "rank": 4, "name": 11, "selected": 8, "q_value": 9, "direction": 17, "measure": 16, "effect": 6,
    "beside": 15, "halves": 6, "censoring_p": 11,
}  # fmt: skip

_PAIR_COLUMNS = {
    "name": 11, "beside": 11, "within": 20, "selected": 8, "q_value": 9, "measure": 14, "effect": 7,
    "low": 7, "high": 7,
}  # fmt: skip


_ASSESSED_COLUMNS = {
    "name": 11, "beside": 11, "measure": 12, "effect": 7, "effect_there": 12, "low_there": 9,
    "high_there": 10, "same_way": 8, "p_value": 9, "shows_again": 11,
}  # fmt: skip


@click.command("features", cls=Brief, first=("--top", "--selected", "--why", "--csv", "--json"))
@click.argument("runs", metavar="RUN...", type=FILE, nargs=-1, required=True)
@output.RUN_STORE_OPTION
@click.option("--selected", "only_selected", is_flag=True, help="Only the selected features.")
@output.with_options(output.RECORD_OPTIONS)
@click.option("--why", metavar="NAME", help="Say why this feature is in or out.")
def features_command(
    runs: tuple[Path, ...],
    store: Place | None,
    only_selected: bool,
    memory_mb: int,
    why: str | None,
    **form: Any,
) -> None:
    """List the features of RUN, the best first; also while it goes on.

    Selected features come first. The table has some of the columns, --csv has all; --help-all says
    what they mean. Of several RUNs, such as those of several targets, one table has the lines of
    all, with run and target before each.

    Where its store is gone, those that a verdict put first, and why, are read from RUN itself.

    \b
    name, rank                place in the order shown
    selected, kept            passed the judge; may be held in subspaces
    importance                mean decrease in impurity over the trees grown on
                              subspaces it was in
    importance_ensemble       the same over all trees (Eq. 1 of the paper)
    n_drawn                   subspaces it was in
    p_better                  share of them in which it beat the probe
    entered                   iteration after which it was selected, from 1
    With a final verdict selected features come first, ordered
    by what they are worth together. Of the features that are marginally
    significant or reached the last stage of the search:
    q_value                   smallest level at which it would be selected
    score, tree_agreement     importance in the last stage; share of ten batches
                              of its trees that put it among as many as are selected
                              (no evidence: that is the q-value)
    cluster                   number of its cluster of rank-correlated features
    p_value, passes_alone     marginal test; Benjamini and Hochberg at the level
    differs_in                what that test saw: location, spread, what is missing,
                              levels of a category
    direction, measure        which way it differs alone; in which measure
    effect, low, high         how much, and an interval; of those shown 5% miss, on
                              average. Of the rows that chose it: likely overstated
    beside                    others beside which it shows more than alone
    Of times to an event:
    censoring_p               that rows differ in censoring, where below 0.05
    inflation                 lambda of all features' tests, the same in each line:
                              about 1 unless rows differ in what most features follow
    With `run --halves` or `resume --halves`:
    halves                    share of the halves of the rows that select it
    With --model other than tree:
    importance                by how much the models of its subspaces lower the loss,
                              compared with no model; or, by permutation, the score
    score, standard_error     difference of the held-out loss without and with it, or
                              its rise where the feature is permuted; rank follows it
    Last come columns of the file, which it has for its features: id, position, taxonomy.
    A value is null (an empty cell) where it is not defined: importance of a
    feature never drawn, p_better without a probe, entered if not selected.

    \b
    Examples:
      srs-ooc features data.run --top 20
      srs-ooc features data.run --why f123
      srs-ooc features data.run --csv > features.csv
      srs-ooc features data-bmi.run data-smoker.run --csv > both.csv
    """
    if len(runs) > 1:
        if why is not None:
            raise UsageError(f"--why: expected one run, found {len(runs)}. Name one.")
        _write_joined(runs, store, memory_mb=memory_mb, only_selected=only_selected, **form)
        return
    ledger = Run(runs[0], writable=False)
    try:
        found = ledger.find_store(store)
    except RunError as error:
        if store is None and why is not None:
            say(ranking.kept_reason(ledger, why, str(error)))
            return
        kept = None if store is not None else ranking.kept_records(ledger)
        if kept is None:
            raise
        say(f"{error} Shown are the features that the verdict put first.", err=True)
        shown = [record for record in kept.values() if record.selected or not only_selected]
        write_records(FeatureRecord, shown, _shown(_VERDICT_COLUMNS, ledger), **form)
        return
    reading = Ranking(ledger, found, memory_mb * MB)
    if why is not None:
        say(reading.explain(why))
        return
    among = reading.selected() if only_selected else None
    records, columns = reading.records(among), _shown(_columns_of(reading), ledger)
    n_there = len(reading.positions) if among is None else len(among)
    kind, heading = reading.record_type, _heading(reading)
    write_records(kind, records, columns, heading=heading, n_there=n_there, **form)
    if isinstance(found.place, Path):  # at a URL their codes may be far
        with suppress(StoreError):  # those of a damaged store, which the ranking does not need
            for title, text in ranking.grave_cautions(reading, ledger, found):
                say(f"note: {title}. {text}", err=True)
    ledger.close()


def _write_joined(
    runs: tuple[Path, ...], store: Place | None, top: int | None, memory_mb: int, **form: Any
) -> None:
    """Write the features of several runs, one run after another; a bad one is refused first."""
    only_selected, is_table = form.pop("only_selected"), not (form["as_csv"] or form["as_json"])
    top, names = top or (TABLE_ROWS if is_table else None), [f.name for f in fields(ScoredRecord)]
    with ExitStack() as stack:
        ledgers = [stack.enter_context(Run(run, writable=False)) for run in runs]
        stores = [ledger.find_store(store) for ledger in ledgers]

        def records() -> Iterator[Any]:
            for ledger, seen in zip(ledgers, stores, strict=True):
                reading = Ranking(ledger, seen, memory_mb * MB)
                among = reading.selected() if only_selected else None
                for line in islice(reading.records(among), top):
                    values = {name: getattr(line, name, None) for name in names}
                    whose = {"run": str(ledger.run), "target": seen.manifest.target_name}
                    yield SimpleNamespace(**whose | values)

        joined, columns = make_dataclass("Joined", ["run", "target", *names]), {"target": 11}
        write_records(
            joined, records(), columns | _VERDICT_COLUMNS, top and top * len(runs), **form
        )


def _heading(reading: Ranking) -> str:
    if reading.ranks_only:
        n = reading.n_iterations
        return f"Features by rank; this method selects none; {n:,} iterations done"
    provisional = " (provisional: no verdict yet)" if reading.is_provisional else ""
    selected = counted(reading.n_selected, "feature")
    return f"{selected} selected after {reading.n_iterations} iterations{provisional}"


def _columns_of(reading: Ranking) -> dict[str, int]:
    if issubclass(reading.record_type, ScoredRecord):
        return _ERROR_COLUMNS
    if reading.ranks_only:
        return _RANKED_COLUMNS
    return _COLUMNS if reading.verdict is None else _VERDICT_COLUMNS


def _shown(columns: dict[str, int], ledger: Run) -> dict[str, int]:
    """Return the columns of a list; without those of halves and censoring where there are none."""
    verdict = Verdict.of(ledger)
    out = {"halves"} if halves_of(ledger) is None else set()
    out |= set() if verdict and verdict.facts.get("censored_by") else {"censoring_p"}
    return {name: width for name, width in columns.items() if name not in out}


@click.command("pairs")
@click.argument("run", type=FILE)
@output.RUN_STORE_OPTION
@click.option("--selected", "only_selected", is_flag=True, help="Only of selected features.")
@output.with_options(output.RECORD_OPTIONS)
def pairs_command(
    run: Path,
    store: Place | None,
    only_selected: bool,
    memory_mb: int,
    **form: Any,
) -> None:
    """List the features of RUN that show more beside another than alone, with what both show.

    The rows are parted at the cuts that the test used: the halves of both features make four cells.
    Where a feature shows beside two others, it has a line for each half of the second. The table
    has some of the columns, --csv has all.

    \b
    name, beside              the feature, and the other
    within                    of two others: which half of the second
    selected, q_value         as the verdict has them
    p_value                   of the test beside the others, their choice paid for
    measure                   what cells are of: share of a class, mean of the target
    effect                    difference of differences:
                              (high_high - high_low) - (low_high - low_low)
    low, high                 its interval; of those shown 5% miss, on average
    low_low, low_high,        the measure where the feature, and the other, are in
    high_low, high_high       the lower or the upper half
    n_low_low ...             rows there

    \b
    Examples:
      srs-ooc pairs data.run
      srs-ooc pairs data.run --csv > pairs.csv
    """
    from srs_ooc.results.pair_record import PairRecord, pairs_of
    from srs_ooc.results.report import Report

    with Run(run, writable=False) as ledger:
        report = Report(ledger, ledger.find_store(store), memory_mb * MB, draws=False)
        given = report.reading, report.task, report.store
        shown = [pair.record for pair in pairs_of(*given, only_selected=only_selected)]
        columns = dict(_PAIR_COLUMNS)
        if not any(record.within for record in shown):
            del columns["within"]
        write_records(PairRecord, shown, columns, n_there=len(shown), **form)
        if not shown:
            why = "There is no verdict by tests (yet)"
            if report.reading.verdict is not None:
                which = "selected feature" if only_selected else "feature"
                why = f"No {which} shows more beside another than alone"
            say(f"{why}: no pairs.", err=form["as_csv"] or form["as_json"])


@click.command("assess")
@click.argument("run", type=FILE)
@click.argument("other", metavar="OTHER", type=output.STORE)
@output.RUN_STORE_OPTION
@output.with_options(output.RECORD_OPTIONS)
def assess_command(
    run: Path, other: Place, store: Place | None, memory_mb: int, **form: Any
) -> None:
    """Test the selected features of RUN again in the store OTHER: a second cohort, plate or site.

    RUN may be a text file with a name a line, too: then features are tested one by one.

    Features are found by name; the target of OTHER is of the same kind, with classes of the same
    names. Nothing is chosen there, so p-values and intervals are those of features named before.
    They are of OTHER as it is: no covariates are adjusted for. Below them: how well a forest on the
    features, grown on the rows of RUN, predicts those of OTHER, with an interval of 95%.

    \b
    name, beside              the feature; beside which others it was found and is tested
    is_there                  whether OTHER has it, and those others
    measure                   what the effects are of
    effect, low, high         in RUN, likely too large: the same rows chose the feature
    effect_there ...          in OTHER, with an interval of 95%
    same_way                  whether both go the same way
    p_value                   in OTHER, by the same test
    shows_again               p at most 0.05 over the features there are, no other way

    \b
    Examples:
      srs-ooc assess data.run cohort2.zarr --csv > again.csv
    """
    from srs_ooc.results import assessment
    from srs_ooc.results.report import Report

    process_nbytes()  # of the program alone, before there is work
    if is_named := run.is_file():
        names = (line.decode() for line in read_lines(run, "feature"))
        found, scores = assessment.assess_named(names, open_store(other)), []
    else:
        with Run(run, writable=False) as ledger:
            report = Report(ledger, ledger.find_store(store), memory_mb * MB, draws=False)
            found = assessment.assess(report, there := open_store(other))
            scores = assessment.panel_scores(report, there, memory_mb)
    columns = _ASSESSED_COLUMNS
    write_records(assessment.AssessedRecord, found, columns, n_there=len(found), **form)
    for line in assessment.summary(found, scores, "named" if is_named else "selected"):
        say(line, err=form["as_csv"] or form["as_json"])


@click.command("compare")
@click.argument("first", metavar="RUN", type=FILE)
@click.argument("second", metavar="RUN", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="One JSON object; keys as listed below.")
@output.MEMORY_OPTION
def compare_command(first: Path, second: Path, as_json: bool, memory_mb: int) -> None:
    """Compare two runs: what both select, how alike they rank, which options differ.

    Features are compared by name, so that the runs may be on different stores.

    \b
    Keys of --json:
      same_store                whether both are runs on one store
      differences               options that differ, with the value of each run
      n_iterations, n_selected  of each run
      n_both, jaccard           features that both select; their share of those either does
      n_ranked, rank_correlation  features among the first 1,000 of both; Spearman's
      only_first, only_second   the ten best that only one of them selects
      is_provisional            whether a verdict is still to come

    \b
    Examples:
      srs-ooc compare data.run other.run
      srs-ooc compare a.run b.run --json
    """
    with Run(first, writable=False) as one, Run(second, writable=False) as two:
        found = ranking.compare((one, two), cap_nbytes=memory_mb * MB)
    if as_json:
        output.echo_json(vars(found))
        return
    shared = "" if found.jaccard is None else f" ({found.jaccard:.0%} of those either selects)"
    alike = "-" if found.rank_correlation is None else f"{found.rank_correlation:.3f}"
    lines = {
        "store": "the same" if found.same_store else "not the same",
        "iterations": " / ".join(f"{n:,}" for n in found.n_iterations),
        "selected": " / ".join(f"{n:,}" for n in found.n_selected),
        "by both": f"{found.n_both:,}{shared}",
        "rank correlation": f"{alike} (of {found.n_ranked:,} among the first 1,000 of both)",
        "only by the first": ", ".join(found.only_first) or "none",
        "only by the second": ", ".join(found.only_second) or "none",
        "note": "a verdict is still to come" if found.is_provisional else "",
        "options": "these differ:" if found.differences else "the same",
    }
    for name, value in lines.items():
        if value:
            say(f"{name:<20}{value}")
    for name, values in found.differences.items():
        shown = ["not used" if value is None else str(value) for value in values]
        say(f"  {name.replace('_', '-'):<18}{' / '.join(shown)}")


@click.command("export")
@click.argument("paths", nargs=-1, required=True, type=FILE, metavar="RUN OUT")
@click.option("--top", type=output.COUNT, metavar="N",
              help="The N best features instead of the selected ones.")  # fmt: skip
@click.option("--names", "names_file", type=FILE, metavar="FILE",
              help="The features that FILE names, one a line, instead.")  # fmt: skip
@output.RUN_STORE_OPTION
@output.SAFE_OPTION
@output.MEMORY_OPTION
def export_command(
    paths: tuple[Path, ...],
    top: int | None,
    names_file: Path | None,
    store: Place | None,
    safe_csv: bool,
    memory_mb: int,
) -> None:
    """Write the features that RUN selected to OUT, best first.

    Each row has its row id, the real values of these features, and the target. A store that was
    moved may also stand before RUN, without --store. How OUT ends says the format:

    \b
    .csv, .csv.gz             CSV, also where OUT ends in nothing known
    .parquet, .feather        takes `pip install 'srs-ooc[arrow]'`
    .svmlight, .svm           numbers only; classes are numbered
    .npy                      the values alone, numbers only
    .h5ad                     AnnData, numbers only; takes `pip install 'srs-ooc[cells]'`
    .bed                      PLINK 1, with .bim and .fam: genotypes, in the order of
                              their file, of all rows
    .txt                      the names alone, one a line, as --exclude reads them
    .zarr                     a smaller store, with weights, strata and groups

    \b
    Examples:
      srs-ooc export data.run selected.csv
      srs-ooc export data.run best.parquet --top 100
      srs-ooc export data.run small.zarr --top 1000
    """
    from srs_ooc.results import exporting

    if len(paths) != 2 and (len(paths) != 3 or store is not None):
        raise UsageError(
            f"expected RUN and OUT, found {counted(len(paths), 'path')}. Name a store that was "
            "moved with --store. `srs-ooc export --help` shows examples."
        )
    store, (run, out) = (place_of(paths[0]) if len(paths) == 3 else store), paths[-2:]
    exporting.check_asked(top, names_file, out)  # before anything is read
    cap_nbytes = memory_mb * MB
    with Run(run, writable=False) as ledger:
        opened = ledger.find_store(store)
        if names_file is not None:
            positions = exporting.named_positions(opened, names_file, cap_nbytes)
        else:
            n_columns = min(top or status_of(ledger).n_selected, opened.n_features)
            later = total_nbytes(exporting.export_leases(opened, n_columns, out))
            positions = exporting.ranked_positions(
                ledger, Ranking(ledger, opened, cap_nbytes, later_nbytes=later), top
            )
    exporting.export_columns(opened, positions, out, cap_nbytes=cap_nbytes, safe=safe_csv)
    rows = None if exporting.is_store_name(out) else opened.target_rows()
    n_rows = opened.n_rows if rows is None else len(rows)
    say(f"{out}: {counted(len(positions), 'feature')} of {counted(n_rows, 'row')}")
