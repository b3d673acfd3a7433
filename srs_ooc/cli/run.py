"""``srs-ooc run`` and ``srs-ooc resume``."""

import signal
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click

from srs_ooc.cli.progress import RunProgress
from srs_ooc.errors import UsageError
from srs_ooc.kernel.tree import IMPURITIES, SPLITTERS, THRESHOLDS
from srs_ooc.ledger import Ledger
from srs_ooc.plan.expect import planned_run
from srs_ooc.records import Step
from srs_ooc.report.ranking import Reading
from srs_ooc.report.status import Status, status_of
from srs_ooc.report.verdict import VerdictReading
from srs_ooc.runs import Request, default_run_path, find_store, is_done, open_or_create, work_on
from srs_ooc.sizes import counted
from srs_ooc.spec import JUDGES, Options
from srs_ooc.store.manifest import read_manifest

_FILE = click.Path(path_type=Path)
SHOWN = 20
WORK_OPTIONS = [
    click.option("--iterations", type=click.IntRange(1), metavar="T",
                 help="Iterations in total, those already done included.  "
                 "[default: as last asked for; a new run: as `srs-ooc plan` advises, "
                 "1000 to 10000]"),
    click.option("--memory-mb", type=click.IntRange(1), metavar="MB",
                 help="Cap on the peak resident memory of the whole process, in MB of 10^6 bytes.  "
                 "[default: as last asked for; 512 for a new run]"),
    click.option("--until-stable", is_flag=True,
                 help="With --judge decoy: end the screen before, once its best 100 items, decoys "
                 "included, are at rest."),
    click.option("--threads", type=click.IntRange(1), metavar="N",
                 help="Workers; results do not depend on it.  [default: the cores there are]"),
]  # fmt: skip
IDENTITY_OPTIONS = [
    click.option("--alpha", metavar="SHARE",
                 help="Share of the subspace held for features already kept (0: Random Subspace). "
                 "Not a significance level.  [default: 0.5]"),
    click.option("--subspace-size", "--q", "subspace_size", metavar="Q",
                 help="Features paged in at a time, or 'max' for all the cap holds.  "
                 "[default: 5% of the features, at least 100, within the cap]"),
    click.option("--max-features", "--k", "max_features", metavar="K",
                 help="Candidate features drawn at each node: a whole number, a share of q such as "
                 "0.1, sqrt or log2.  [default: q]"),
    click.option("--judge", type=click.Choice(JUDGES),
                 help="Test of relevance: the paper's probe, any positive importance, or decoys "
                 "with a final verdict (docs/evidence.md).  [default: decoy; probe with its own "
                 "options or --save-trees]"),
    click.option("--probe-min-draws", type=int, metavar="L",
                 help="A feature must have been drawn more often than this.  [default: 10]"),
    click.option("--probe-min-wins", metavar="BETA",
                 help="... and have beaten the probe in at least this share of them.  "
                 "[default: 0.95]"),
    click.option("--fdr", metavar="LEVEL",
                 help="decoy: bound on the expected share of false features among the selected.  "
                 "[default: 0.1]"),
    click.option("--decoys", type=int, metavar="M",
                 help="decoy: families of decoys, every feature with its rows permuted.  "
                 "[default: 1]"),
    click.option("--replays", type=int, metavar="B",
                 help="decoy: certify against B replays on permuted targets, not by counting "
                 "decoys; for when few features are expected."),
    click.option("--keep", type=int, metavar="N",
                 help="decoy: leading items held in every other subspace.  [default: 10]"),
    click.option("--impurity", type=click.Choice(IMPURITIES),
                 help="Impurity that splits decrease.  [default: gini; variance for a target of "
                 "numbers]"),
    click.option("--splitter", type=click.Choice(SPLITTERS),
                 help="One random split a candidate (extra-trees), or the best one (CART).  "
                 "[default: random]"),
    click.option("--thresholds", type=click.Choice(THRESHOLDS),
                 help="Random thresholds uniform between the ranks of values at the node, or "
                 "between the values themselves, as in scikit-learn.  [default: rank]"),
    click.option("--min-impurity-decrease", metavar="SHARE",
                 help="Least importance of a split; of numbers a share of their variance.  "
                 "[default: 0]"),
    click.option("--bootstrap/--no-bootstrap", default=None,
                 help="Grow each tree on as many rows drawn with replacement.  [default: no]"),
    click.option("--class-weight", metavar="WEIGHTS",
                 help="none, balanced, or NAME=WEIGHT,NAME=WEIGHT.  [default: none]"),
    click.option("--max-depth", type=int, metavar="DEPTH",
                 help="Deepest split level.  [default: no limit]"),
    click.option("--min-samples-leaf", type=int, metavar="ROWS",
                 help="Fewest rows in a leaf.  [default: 1]"),
    click.option("--seed", type=int, help="Everything random follows from it.  [default: 0]"),
    click.option("--round-size", type=int, metavar="N",
                 help="Iterations proposed from the same kept features; 1 is the paper's.  "
                 "[default: 1]"),
    click.option("--draw-block", type=int, metavar="G",
                 help="Draw new features by blocks of G neighbours on disk: as often each, in "
                 "fewer and longer reads; for a store larger than memory. 1 is the paper's.  "
                 "[default: 1]"),
    click.option("--trees-per-subspace", type=int, metavar="M",
                 help="Trees grown on each subspace once it is paged in; 1 is the paper's.  "
                 "[default: 1]"),
    click.option("--exclude", "exclude_file", type=_FILE, metavar="FILE",
                 help="Features to leave out, one name a line."),
    click.option("--exclude-missing", is_flag=True, help="Leave out features with missing values."),
    click.option("--rows", "rows_file", type=_FILE, metavar="FILE",
                 help="Row ids to train on, one a line."),
]  # fmt: skip


def with_options(options: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return a decorator that adds click options to a command, in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _read_config(context: click.Context, _: click.Parameter, file: Path | None) -> Path | None:
    """Make the file's values the defaults of the other options, so that flags win."""
    if file is None:
        return None
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file}: could not be read: {error.strerror}.") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file}: expected a TOML file of options: {error}.") from error
    by_flag = {
        flag.removeprefix("--").replace("-", "_"): parameter
        for parameter in context.command.params
        if isinstance(parameter, click.Option)
        for flag in parameter.opts
    }
    unknown = sorted(set(values) - set(by_flag))
    if unknown:
        raise UsageError(
            f"{file}: expected long option names with underscores, found {', '.join(unknown)}. "
            f"Known: {', '.join(sorted(by_flag))}."
        )
    for name, value in values.items():
        _check_type(file, name, value, by_flag[name])
    context.default_map = {str(by_flag[name].name): value for name, value in values.items()}
    return file


def _check_type(file: Path, name: str, value: Any, option: click.Option) -> None:
    """Refuse a value that conversion to the option's type would change."""
    expected: tuple[type, ...] = (str, int, float)
    if option.is_flag:
        expected = (bool,)
    elif isinstance(option.type, click.Path):
        expected = (str,)
    elif isinstance(option.type, click.types.IntParamType):
        expected = (int,)
    if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
        names = {bool: "true or false", int: "a whole number", str: "text"}
        wanted = names[expected[0]] if len(expected) == 1 else "text or a number"
        raise UsageError(f"{file}: {name}: expected {wanted}, found {value!r}.")


@click.command("run")
@click.argument("store", required=False, type=_FILE)
@with_options(WORK_OPTIONS + IDENTITY_OPTIONS)
@click.option("--save-trees/--no-save-trees", default=None,
              help="Keep every tree in the run's folder, for `srs-ooc predict`; settled when the "
              "run is created.  [default: no]")  # fmt: skip
@click.option("--config", type=_FILE, is_eager=True, expose_value=False, callback=_read_config,
              metavar="FILE.toml", help="Options from a TOML file; flags win over it.")  # fmt: skip
@click.option(
    "--out",
    type=_FILE,
    metavar="RUN",
    help="Folder of the run.  [default: the store's stem with .run, beside it]",
)
def run_command(
    store: Path | None,
    iterations: int | None,
    memory_mb: int | None,
    until_stable: bool,
    threads: int | None,
    exclude_file: Path | None,
    exclude_missing: bool,
    rows_file: Path | None,
    save_trees: bool | None,
    out: Path | None,
    **identity: Any,
) -> None:
    """Select features of STORE, or of the only store in the current folder.

    The same command again goes on with the run where it was interrupted, or prints its result.
    """
    store = only_store() if store is None else store
    read_manifest(store)
    request = Request(
        Options(**identity),
        exclude_file,
        rows_file,
        exclude_missing,
        iterations,
        memory_mb,
        threads,
        save_trees,
        until_stable,
    )
    run = default_run_path(store) if out is None else out
    is_new = not run.exists()
    ledger = open_or_create(store, run, request, planned_run)
    if is_new and iterations is None:
        planned = ledger.meta("planned")
        click.echo(
            f"--iterations not given: {planned['iterations']:,} ({planned['reason']}). "
            "`srs-ooc plan` says more; `srs-ooc resume RUN --iterations TOTAL` goes on.",
            err=True,
        )
    _work(ledger, store, request)


@click.command("resume")
@click.argument("run", type=_FILE)
@with_options(WORK_OPTIONS)
def resume_command(
    run: Path,
    iterations: int | None,
    memory_mb: int | None,
    until_stable: bool,
    threads: int | None,
) -> None:
    """Go on with RUN where it was interrupted, or to a larger total of iterations."""
    ledger = Ledger(run, writable=True)
    request = Request(
        iterations=iterations, memory_mb=memory_mb, threads=threads, until_stable=until_stable
    )
    _work(ledger, find_store(ledger), request)


def only_store() -> Path:
    """Return the only store in the current folder, or say what was found."""
    stores = sorted(path.parent for path in Path().glob("*.zarr/zarr.json"))
    if len(stores) != 1:
        found = "none" if not stores else ", ".join(path.name for path in stores)
        raise UsageError(
            f"expected one store (*.zarr) in the current folder, found {found}. "
            "Name one: `srs-ooc run STORE`."
        )
    return stores[0]


class _Signals:
    """The first SIGINT or SIGTERM asks the run to stop after the iteration under way."""

    received: int | None = None

    def note(self, number: int, _: FrameType | None) -> None:
        if self.received is not None:
            signal.default_int_handler(number, None)
        self.received = number


@contextmanager
def work_signals() -> Iterator[_Signals]:
    """Yield what the first SIGINT or SIGTERM is noted in."""
    signals = _Signals()
    before = {
        number: signal.signal(number, signals.note) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _work(ledger: Ledger, store: Path, request: Request) -> None:
    until = request.iterations or int(ledger.meta("iterations"))
    progress = RunProgress(request.memory_mb or int(ledger.meta("memory_mb")))
    try:
        with work_signals() as signals:

            def keep_going(step: Step) -> bool:
                progress.show(step)
                return signals.received is None

            try:
                work_on(ledger, store, request, keep_going)
            finally:
                progress.close()
        stopped_at = ledger.progress().iteration
        if stopped_at > until:
            click.echo(f"already at {stopped_at} iterations; nothing to do", err=True)
        if signals.received is not None and not is_done(ledger, until):
            what = "; the verdict is not there yet" if stopped_at >= until else ""
            click.echo(
                f"stopped after {stopped_at} of {until} iterations{what}; nothing is lost. "
                f"Go on with: srs-ooc resume {ledger.run}",
                err=True,
            )
            sys.exit(128 + signals.received)
        _report(ledger, store)
    finally:
        ledger.close()


def _why_none(reading: Reading, status: Status) -> str:
    if reading.verdict is not None:
        return reading.verdict.why_none()
    best = reading.first()
    if status.judge != "probe" or best.p_better is None:
        return "No feature passed the judge yet."
    return (
        f"No feature met the test (drawn more than {status.probe_min_draws} times, better than the "
        f"probe in at least {status.probe_min_wins:g} of them): {best.name}, ranked first, was "
        f"drawn {counted(best.n_drawn, 'time')} and better in {best.p_better:.0%} of them. More "
        "iterations draw each feature more often; with few rows no number of them may be enough. "
        "The ranking still holds: export the best of it with --top N."
    )


def _verdict_line(verdict: VerdictReading) -> str:
    facts, spec = verdict.facts, verdict.spec
    if spec.replays:
        how = f"certified against {spec.replays} replays at level {spec.fdr}"
    else:
        core = len(verdict.selected(only_core=True))
        how = (
            f"{core} of tier core, {counted(facts['n_decoys_above'], 'decoy')} above the cut at "
            f"level {spec.fdr}"
        )
    return (
        f"{verdict.n_selected} selected in {verdict.groups_selected}, {how}; "
        f"{counted(facts['n_marginal'], 'feature')} would pass the marginal test alone."
    )


def _report(ledger: Ledger, store: Path) -> None:
    status = status_of(ledger)
    reading = Reading(ledger, store)
    click.echo(
        f"{counted(status.n_selected, 'feature')} selected after {status.iterations} iterations "
        f"(judge {status.judge}, alpha {status.alpha}, q {status.subspace_size}) "
        f"in {status.seconds:.1f} s of work; "
        f"peak memory {status.peak_rss_mb:.0f} MB of {status.memory_mb} MB."
    )
    if reading.n_selected == 0:
        click.echo(_why_none(reading, status))
    if reading.verdict is not None:
        click.echo(_verdict_line(reading.verdict))
    for stored in reading.best(SHOWN, only_selected=True):
        importance = reading.importance(stored)
        what = "never drawn" if importance < 0 else f"importance {importance:.4g}"
        click.echo(f"  {reading.name(stored)}  ({what})")
    if reading.n_selected > SHOWN:
        click.echo(f"  ... and {reading.n_selected - SHOWN} more")
    click.echo(f"All features: srs-ooc features {ledger.run}")
