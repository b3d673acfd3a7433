"""Where a run or a network stands, and which runs and stores a folder has."""

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from srs_ooc.base.errors import RunError, SrsOocError
from srs_ooc.base.files import release_lock
from srs_ooc.base.options import Params, Share
from srs_ooc.base.text import megabytes
from srs_ooc.learners.tree_learner import TreeParams, learners
from srs_ooc.runs.halves import halves_of
from srs_ooc.runs.ledger import FILE, VALID, hold, is_held
from srs_ooc.runs.run import N_TARGETS, NETWORK, Run
from srs_ooc.runs.screening import is_done, is_growth
from srs_ooc.runs.settling import owner_of
from srs_ooc.runs.spec import RunSpec, declared
from srs_ooc.runs.verdict import Verdict
from srs_ooc.store.arrays import OWN
from srs_ooc.store.store import Store

# Where a run stands.

INFLATION = ("lambda", "lambda_error", "n_effective")
"""What of a verdict's facts a status has."""


@dataclass(frozen=True)
class Status:
    """Where a run stands; ``state`` is running, stopped or finished; sizes in MB of 10**6 bytes.

    ``peak_rss_mb`` is of the process; with ``memory_is_growth``, of a run made from Python, by how
    much the process grew.

    ``parts`` has the options of the run's identity as each part settled them: ``run``, ``method``,
    ``judge``, ``trees``. What was planned when the run was made stands beside what happened; None
    where there is none. ``halves`` of the rows, if they were asked for: how many are ``asked`` and
    ``done``, what each selects (``n_selected``), and the ``agreement`` of their first 20 features.
    ``inflation``: lambda of the tests with its error and the features that have such an error
    (``lambda``, ``lambda_error``, ``n_effective``), each None before a verdict.
    ``is_provisional``: a verdict is still to come. ``target`` that was added to the store: its name
    and digest.
    """

    state: str
    iterations: int
    iterations_asked: int
    n_selected: int
    parts: dict[str, dict[str, Any]]
    rows: str
    excluded: str
    memory_mb: int
    peak_rss_mb: float
    seconds: float
    seconds_per_iteration: float | None
    planned_iterations: int | None
    planned_seconds_per_iteration: float | None
    store: str
    trees_nbytes: int | None
    memory_is_growth: bool
    halves: dict[str, Any] | None = None
    is_provisional: bool = False
    inflation: dict[str, Any] = field(default_factory=dict)
    target: str = OWN

    @property
    def ranks_only(self) -> bool:
        """Whether the run ranks features and selects none (``--judge none``)."""
        return bool(self.parts["run"]["judge"] == "none")

    @property
    def memory(self) -> str:
        """The largest size and the cap, as text."""
        peak = f"{self.peak_rss_mb:.0f}" if self.peak_rss_mb >= 1 else "under 1"
        of = "growth of the program that ran it" if self.memory_is_growth else "peak"
        return f"{peak} of {self.memory_mb} MB ({of})"


def _state(ledger: Run, *, is_done: bool) -> str:
    if is_done:
        return "finished"
    return "running" if is_held(ledger.run) else "stopped"


def status_of(ledger: Run) -> Status:
    """Return where the run of an open ledger stands, as of its last commit."""
    progress, spec = ledger.progress(), ledger.spec
    asked = int(ledger.meta("iterations"))
    planned = ledger.meta("planned") or {}
    verdict = Verdict.of(ledger)
    facts = {} if verdict is None else verdict.facts
    asked_of_halves, found = ledger.n_halves, halves_of(ledger)
    n_each, agreement = ([], None) if found is None else (found.n_selected, found.agreement)
    n_left = asked_of_halves and asked_of_halves - len(n_each)
    counts = {"asked": asked_of_halves, "done": len(n_each), "n_selected": n_each}
    return Status(
        state=_state(ledger, is_done=is_done(ledger, asked) and not n_left),
        iterations=progress.iteration,
        iterations_asked=asked,
        n_selected=progress.n_kept if verdict is None else verdict.n_selected,
        parts=_parts_of(spec),
        rows=spec.rows,
        excluded=spec.excluded,
        memory_mb=int(ledger.meta("memory_mb")),
        peak_rss_mb=megabytes(max(progress.peak_nbytes, facts.get("peak_nbytes", 0))),
        seconds=round(progress.seconds + facts.get("seconds", 0.0), 3),
        seconds_per_iteration=(
            progress.seconds / progress.iteration if progress.iteration else None
        ),
        planned_iterations=planned.get("iterations"),
        planned_seconds_per_iteration=planned.get("seconds_per_iteration"),
        store=str(ledger.meta("store")[0]),
        trees_nbytes=ledger.meta(VALID),
        memory_is_growth=is_growth(ledger),
        halves=counts | {"agreement": agreement} if asked_of_halves else None,
        is_provisional=spec.concludes and verdict is None,
        inflation={name: facts.get(name) for name in INFLATION},
        target=spec.target,
    )


def _parts_of(spec: RunSpec) -> dict[str, dict[str, Any]]:
    """Return settled options by part and name; shares, which are exact as text, as numbers."""
    parts: dict[str, Params] = {"run": spec.run, "method": spec.sampler, "judge": spec.judging}
    found = {part: params.values() for part, params in parts.items()}
    found[spec.learner.part], known = spec.learner.shown(), declared()
    return {
        part: {n: float(v) if isinstance(known[n].kind, Share) else v for n, v in values.items()}
        for part, values in found.items()
    }


def values_of(status: Status) -> dict[str, Any]:
    """Return a status as JSON-ready values.

    Every option that runs of its method may have is there, null where it does not; options of other
    methods are left out, those of models from a run of trees, and ``halves`` and ``target`` from a
    run without.
    """
    some = ["parts", "halves", "is_provisional", "inflation", *["target"] * (status.target == OWN)]
    values = {name: v for name, v in vars(status).items() if name not in some} | status.inflation
    if status.halves is not None:
        values["halves"] = status.halves
    held = {name: value for part in status.parts.values() for name, value in part.items()}
    known = declared()
    # of a run whose model is no tree, and of no other
    others = {n for kind in learners() for n in kind.options()} - {*TreeParams.options()}
    others |= {name for name in known if owner_of(name).startswith("--method")}
    names = [name for name in known if name in held or name not in others]
    return values | {name: held.get(name) for name in names}


# Runs and stores of a folder, and removing a run.

_DEEPEST = 3
"""Folders below the one asked for that are looked into."""


@dataclass(frozen=True)
class Found:
    """A run or a store; what does not apply, or cannot be read, is None.

    Attributes
    ----------
    path : str
        Where it is, from the folder that was asked for.
    kind : str
        ``run``, ``network`` (what is done of one) or ``store``.
    state : str
        Of a run or network: running, stopped or finished; of a store: complete; ``cannot be read``
        of any.
    iterations, iterations_asked, n_selected : int or None
        Of a run; nothing is selected before its verdict.
    store : str or None
        Of a run: the path of its store.
    n_rows, n_features : int or None
        Of a store.
    targets_done, n_targets : int or None
        Of a network.
    """

    path: str
    kind: str
    state: str
    iterations: int | None = None
    n_selected: int | None = None
    store: str | None = None
    n_rows: int | None = None
    n_features: int | None = None
    iterations_asked: int | None = None
    targets_done: int | None = None
    n_targets: int | None = None

    @property
    def done(self) -> str | None:
        """What is done of a run or a network, as text."""
        if self.iterations is not None:
            return f"{self.iterations:,} of {self.iterations_asked:,}"
        if self.targets_done is None:
            return None
        of = "" if self.n_targets is None else f" of {self.n_targets:,}"
        return f"{self.targets_done:,}{of} targets"


def list_runs(folder: str | Path = ".") -> list[Found]:
    """Return the runs and stores at or up to three folders below one; links are not followed.

    Raises
    ------
    RunError
        If there is no such folder.
    """
    top = Path(folder)
    if not top.is_dir():
        raise RunError(f"{folder}: expected a folder with runs and stores, found none.")
    found: list[Found] = []
    for parent, children, files in os.walk(top):
        children.sort()
        path = Path(parent)
        name = path.relative_to(top)
        is_run = FILE in files
        is_store = not is_run and "zarr.json" in files and (path / "codes").is_dir()
        if is_run or is_store:
            try:
                found.append((_run if is_run else _store)(path, str(name)))
            except SrsOocError:
                found.append(Found(str(name), "run" if is_run else "store", "cannot be read"))
        if is_run or is_store or len(name.parts) >= _DEEPEST:
            children.clear()
    return found


def _run(path: Path, name: str) -> Found:
    with Run(path, writable=False) as ledger:
        if (of := network_values(ledger)) is not None:
            counts = {"targets_done": of["targets"], "n_targets": of["targets_asked"]}
            return Found(name, "network", of["state"], **counts)
        status = status_of(ledger)
    n_selected = None if status.is_provisional or status.ranks_only else status.n_selected
    counts = {"iterations": status.iterations, "iterations_asked": status.iterations_asked}
    return Found(name, "run", status.state, store=status.store, n_selected=n_selected, **counts)


def _store(path: Path, name: str) -> Found:
    store = Store.open(path)
    return Found(name, "store", "complete", n_rows=store.n_rows, n_features=store.n_features)


def remove_run(run: Path) -> None:
    """Remove a run that no process is working on; its store stays.

    The folder is renamed before it is emptied: a run is there as it was, or gone.

    Raises
    ------
    RunError
        If there is no run, another process works on it, or it cannot be removed.
    """
    if run.is_symlink() or not (run / FILE).is_file():
        raise RunError(
            f"{run}: expected the folder of a run, found none. Nothing was removed. "
            "`srs-ooc runs` lists the runs of a folder."
        )
    lock = hold(run)
    try:
        going = run.with_name(f".{run.name}.removed-{uuid4().hex[:8]}")
        run.rename(going)
        shutil.rmtree(going)
    except OSError as error:
        raise RunError(
            f"{run}: could not be removed: {error.strerror or error}. Check the permissions of "
            "its folder and of the one it is in."
        ) from error
    finally:
        release_lock(lock)


# Where a network stands.


def network_values(ledger: Run) -> dict[str, Any] | None:
    """Return where a network stands, as JSON-ready values; None if the ledger is a run's.

    ``identity`` has the options of the network, and what identifies its regulators, targets, rows
    and store; the others are as of :class:`Status`.
    """
    if not ledger.has_meta(NETWORK):
        return None
    progress, asked = ledger.progress(), int(ledger.meta(N_TARGETS))
    return {
        "state": _state(ledger, is_done=progress.iteration >= asked),
        "targets": progress.iteration,
        "targets_asked": asked,
        "identity": ledger.meta(NETWORK),
        "peak_rss_mb": megabytes(progress.peak_nbytes),
        "seconds": round(progress.seconds, 3),
    }
