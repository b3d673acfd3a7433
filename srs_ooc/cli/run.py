"""``srs-ooc run`` and ``srs-ooc resume``."""

import sys
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

import click

from srs_ooc.base.budget import process_nbytes
from srs_ooc.base.options import names_in
from srs_ooc.base.text import LONG_SECONDS, counted, describe_seconds
from srs_ooc.base.urls import Place, Url
from srs_ooc.cli import output, run_options
from srs_ooc.cli.output import FILE, say, with_options
from srs_ooc.planning.speed import planned_run
from srs_ooc.results.feature_record import held_text, lambda_text, why_none
from srs_ooc.results.live import RunProgress, watched
from srs_ooc.results.ranking import Ranking, grave_cautions
from srs_ooc.results.standing import Status, status_of
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request, asked_run_path
from srs_ooc.runs.run import Run
from srs_ooc.runs.screening import is_done
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.verdict import Verdict
from srs_ooc.store.manifest import hopeless
from srs_ooc.store.opening import open_store
from srs_ooc.store.store import Store

SHOWN = 20
MANY = 50
"""Selected features beyond which a small set is suggested."""
WORK_OPTIONS = [
    click.option("--iterations", type=output.COUNT, metavar="T",
                 help="Iterations in total. Those already done are included.  "
                 "[default: 1000 to 10000; of a new run as `srs-ooc plan` advises, of one that "
                 "goes on as last asked for]"),
    output.memory_option("512; of a run that goes on, as last asked for"),
    click.option("--halves", type=output.whole(0), metavar="N",
                 help="Then repeat the search on N random halves of the rows, such as 20 (an even "
                 "number, at most 1000), to say how stable the selection is. Each takes half as "
                 "long as the run, or more.  "
                 "[default: 0; of a run that goes on, as last asked for]"),
    output.THREADS_OPTION,
    *output.PROGRESS_OPTIONS,
]  # fmt: skip


@click.command("run", cls=run_options.ByPart, first=(
    "--memory-mb", "--fdr", "--adjust", "--iterations", "--seed", "--exclude", "--out", "--fresh",
))  # fmt: skip
@click.argument("store", required=False, type=output.STORE)
@with_options(WORK_OPTIONS + run_options.settled_options())
@with_options(run_options.CLUSTER_OPTIONS)
@click.option("--save-trees/--no-save-trees", default=None,
              help="Keep every tree (of prs and rase the models of the end) in the run's folder, "
              "for `srs-ooc predict`; settled when the run is created.  [default: no]")  # fmt: skip
@run_options.CONFIG_OPTION
@click.option("--fresh", is_flag=True,
              help="Begin another run beside those there are.")  # fmt: skip
@click.option("--out", type=FILE, metavar="RUN",
              help="Folder of the run.  [default: x.run beside x.zarr; of a store at a URL, in the "
              "current folder]")  # fmt: skip
def run_command(
    store: Place | None,
    shows: bool | None,
    fresh: bool,
    out: Path | None,
    **given: Any,
) -> None:
    """Select features of STORE, or of the only store in the current folder.

    The same command again goes on with the run where it was interrupted, or prints its result.

    Of a store at a URL a copy is kept in the folder $SRS_OOC_CACHE_DIR (srs-ooc in the user's
    caches), of at most $SRS_OOC_CACHE_MB MB (2048).

    \b
    Examples:
      srs-ooc run data.zarr --memory-mb 512
      srs-ooc run data.zarr --fresh --fdr 0.05 --seed 1
      srs-ooc run data.zarr --save-trees --iterations 10000
      srs-ooc run data.zarr --target bmi,smoker
    """
    process_nbytes()  # of the program alone, before there is work
    opened = open_store(run_options.only_store() if store is None else store)
    asked = run_options.request_of(given)
    names = _targets_in(opened, asked.target)
    place, out = (out, None) if out and len(names) > 1 else (opened.place, out)
    runs: list[Path] = []
    for name in names:
        added = None if name == opened.own_target else name
        runs.append(run := asked_run_path(place, out, fresh=fresh, target=added))
        request, is_new = replace(asked, target=name), not run.exists()
        ledger = open_or_create(opened, run, request, planned_run)
        level = ledger.spec.fdr if ledger.spec.concludes else None
        seen = ledger.seen(opened)
        if is_new:
            _say_planned(ledger, seen, request)
            if fresh or isinstance(opened.place, Url):
                say(f"a new run: {run}", err=True)
        if len(names) > 1:
            say(f"target {name!r}: {run}")
        _work(ledger, seen, request, shows)
    if len(runs) > 1 and level is not None:
        say(
            f"Level {level} holds for each of the {len(runs)} targets alone, and for the mean over "
            "them. For all that is selected together, or for targets picked by what they show, "
            f"give --fdr {float(level) / len(runs):.4g}, the level over the number of targets. "
            f"One table: srs-ooc features {' '.join(quote(str(run)) for run in runs)} --csv"
        )


def _targets_in(store: Store, text: str | None) -> list[str | None]:
    """Return the targets that a text names, all of which are there: one, or several by commas."""
    if text is None:
        return [None]
    there = [store.own_target, *(one.name for one in store.added("target"))]
    names = (text,) if text in there else names_in(text)
    for name in names:
        store.of_target(name)
    return list(dict.fromkeys(names))


@click.command("resume")
@click.argument("run", type=FILE)
@with_options(WORK_OPTIONS)
@with_options(run_options.CLUSTER_OPTIONS)
@click.option("--accept-loss", is_flag=True,
              help="Where commits of the run were lost, go on from what is left.")  # fmt: skip
def resume_command(run: Path, shows: bool | None, accept_loss: bool, **given: Any) -> None:
    """Go on with RUN where it was interrupted, or to a larger total of iterations.

    \b
    Examples:
      srs-ooc resume data.run
      srs-ooc resume data.run --iterations 50000
    """
    ledger = Run(run, writable=True, accept_loss=accept_loss)
    _work(ledger, ledger.find_store(), run_options.request_of(given), shows)


def _say_planned(ledger: Run, store: Store, request: Request) -> None:
    """Say how many iterations a new run has, how long they take if that is long, and its notes."""
    planned, iterations = ledger.meta("planned"), request.iterations
    if iterations is None:
        say(
            f"--iterations not given: {planned['iterations']:,} ({planned['reason']}). "
            "`srs-ooc plan` says more; `srs-ooc resume RUN --iterations TOTAL` goes on.",
            err=True,
        )
    seconds = (iterations or planned["iterations"]) * planned["seconds_per_iteration"]
    if seconds >= LONG_SECONDS:
        say(
            f"about {describe_seconds(seconds)} by an ESTIMATE from published rates; "
            "`srs-ooc plan STORE` with the same options measures. What is done is kept: Ctrl-C "
            "ends it.",
            err=True,
        )
    for note in Plan.of_run(ledger, store, request).notes:
        say(note, err=True)
    spec = ledger.spec
    if spec.draw_block > 1 and "draw_block" not in request.options:
        why = "the store is larger than the cap; `--with draw_block=1` is the paper's way"
        say(f"--with draw_block not given: {spec.draw_block} ({why}).", err=True)


def _work(ledger: Run, store: Store, request: Request, shows: bool | None) -> None:
    until = request.iterations or int(ledger.meta("iterations"))
    progress = RunProgress(request.memory_mb or int(ledger.meta("memory_mb")), shows)
    with ledger:
        with watched(progress) as (watch, received):
            work_on(ledger, store, request, watch)
        stopped_at = ledger.progress().iteration
        if stopped_at > until:
            say(f"already at {stopped_at} iterations; nothing to do", err=True)
        if received and (stopped := _stopped(ledger, until)):
            say(
                f"stopped after {stopped}; nothing is lost. "
                f"Go on with: srs-ooc resume {quote(str(ledger.run))}",
                err=True,
            )
            sys.exit(128 + received[0])
        _report(ledger, store)


def _stopped(ledger: Run, until: int) -> str | None:
    """Say how far a run is that was stopped; None where nothing is left to do."""
    n_done = ledger.progress().iteration
    if not is_done(ledger, until):
        what = "; the verdict is not there yet" if n_done >= until else ""
        return f"{n_done} of {until} iterations{what}"
    halves = status_of(ledger).halves or {"done": 0, "asked": 0}
    n_done, n_asked = halves["done"], halves["asked"]
    return f"{n_done} of {n_asked} halves" if n_done < n_asked else None


def _why_none(reading: Ranking, status: Status, spec: RunSpec) -> str:
    if reading.verdict is not None:
        return why_none(reading.verdict, spec.fdr)
    best = reading.record(1, int(reading.top(1)[0]))
    if reading.ranks_only:
        error = getattr(best, "standard_error", None)
        beside = "" if error is None else f" (standard error {error:.2g})"
        said = "" if best.score is None else f", with a score of {best.score:.3g}{beside}"
        return f"This method ranks features and selects none. First: {best.name}{said}."
    probe = status.parts["judge"]
    if "probe_min_draws" not in probe or best.p_better is None:
        return "No feature passed the judge yet."
    return (
        f"No feature met the test (drawn more than {probe['probe_min_draws']} times, better than "
        f"the probe in at least {probe['probe_min_wins']:g} of them): {best.name}, ranked first, "
        f"was drawn {counted(best.n_drawn, 'time')} and better in {best.p_better:.0%} of them. "
        "More iterations draw each feature more often; with few rows no number of them may be "
        "enough. "
        "The ranking still holds: export the best of it with --top N."
    )


def _verdict_lines(verdict: Verdict, level: str) -> list[str]:
    n_marginal, n_beside = verdict.facts["n_marginal"], verdict.n_beside_selected
    n_alone = (verdict.best["p_value"] <= verdict.facts["marginal_cutoff"]).sum()
    clusters = verdict.clusters_selected
    where = f"; the selected features lie in {clusters} of correlated ones"
    return [
        f"{held_text(verdict, level)}{'' if clusters is None else where}.",
        f"{counted(n_marginal, 'feature')} {'is' if n_marginal == 1 else 'are'} marginally "
        f"significant (informative without any other feature), {n_alone:,} of them selected.",
        f"{counted(n_beside, 'selected feature')} {'shows' if n_beside == 1 else 'show'} more "
        "beside one or two others than alone.",
        *(f"{said}; 1 is right." for said in [lambda_text(verdict.facts)] if said),
    ]


def _worth(reading: Ranking, stored: int) -> str:
    """Return what speaks for a selected feature: its q-value, or its importance."""
    if reading.verdict is not None:
        line = reading.record(0, stored)
        return f"q-value {line.q_value:.4g}{(line.beside and f', beside {line.beside}') or ''}"
    importance = float(reading.importances(slice(stored, stored + 1))[0])
    return "never drawn" if importance < 0 else f"importance {importance:.4g}"


def _report(ledger: Run, store: Store) -> None:
    status = status_of(ledger)
    spec = ledger.spec
    reading = Ranking(ledger, store)
    came_to = f"{counted(status.n_selected, 'feature')} selected"
    judged = f" (judge {spec.run.judge}, alpha {float(spec.alpha)}, q {spec.subspace_size})"
    if reading.ranks_only:
        came_to, judged = f"All features ranked by {spec.run.method}", ""
    say(
        f"{came_to} after {status.iterations:,} iterations{judged} in {status.seconds:.1f} s of "
        f"work; peak memory {status.peak_rss_mb:.0f} MB of {status.memory_mb} MB."
    )
    if reading.n_selected == 0:
        plan = Plan.of_run(ledger, store)
        few = plan.task.too_few(spec, plan.shape.n_candidates)
        cause = hopeless(store.manifest, plan.task.target) or few
        say(cause or _why_none(reading, status, spec))
    if reading.verdict is not None:
        for line in _verdict_lines(reading.verdict, spec.fdr):
            say(line)
    if reading.halves is not None:
        say(f"{reading.halves}.")
    for stored in reading.selected(SHOWN).tolist():
        say(f"  {reading.name(stored)}  ({_worth(reading, stored)})")
    for title, text in grave_cautions(reading, ledger, store):
        say(f"note: {title}. {text}")
    if reading.n_selected > SHOWN:
        say(f"  ... and {reading.n_selected - SHOWN} more")
    if reading.n_selected > MANY:
        say(
            "Many of these carry the same information. To find a few that predict about as well: "
            f"srs-ooc compact {quote(str(ledger.run))}"
        )
    if reading.ranks_only:
        say(f"Take the best: srs-ooc export {quote(str(ledger.run))} best.csv --top {SHOWN}")
    say(f"All features: srs-ooc features {quote(str(ledger.run))}")
