"""Runs: opening or creating one, and working on it and on halves of its rows."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from srs_ooc.base.budget import check_stages
from srs_ooc.base.errors import RunError
from srs_ooc.base.records import Watch
from srs_ooc.runs import halves
from srs_ooc.runs.plan import Plan, asked_of, digests_of
from srs_ooc.runs.request import DEFAULT_ITERATIONS, Request
from srs_ooc.runs.run import HALVES, Run
from srs_ooc.runs.screening import is_done, keep, search
from srs_ooc.runs.settling import check_same
from srs_ooc.store.store import Store


def open_or_create(
    store: Store,
    run: Path,
    request: Request,
    expected: Callable[[Plan], dict[str, Any]] | None = None,
) -> Run:
    """Open the ledger of ``run`` for writing, creating the run if there is none.

    A new run for which no iterations were asked gets as many as ``expected`` says of its plan. What
    that returns, ``iterations`` and more, is kept with the run and no part of its identity.

    Raises
    ------
    StoreError, RunError, UsageError, BudgetError
        If the store or the run cannot be used as asked; nothing is created then.
    """
    if run.exists():
        with ExitStack() as stack:
            ledger = stack.enter_context(Run(run, writable=True))
            _check_same(ledger, ledger.seen(store), request)
            stack.pop_all()
        return ledger
    plan = Plan.of(store, request)
    planned = None if expected is None else expected(plan)
    if request.iterations is None:
        default = DEFAULT_ITERATIONS if planned is None else planned["iterations"]
        plan = plan.asked(iterations=default)
    plan.begin(run, planned)
    return Run(run, writable=True)


def _check_same(ledger: Run, store: Store, request: Request) -> None:
    """Check that what is asked is what the run of a ledger is."""
    inputs, asked = asked_of(store, request.of_run(ledger))
    given = {**asked.options, **digests_of(store, inputs, asked)}
    if request.rows_file is None:
        given.pop("rows", None)  # those of a target that only some rows have
    check_same(given, ledger.spec, str(ledger.run))
    saves, named = ledger.saves_trees, ("no-save-trees", "save-trees")
    if request.save_trees not in (None, saves):
        raise RunError(
            f"{ledger.run} is a run with {named[saves]} (asked for: {named[not saves]}). A run "
            "keeps all of its trees or none: leave the option out to go on with it, begin another "
            "run with --fresh, or name its folder with --out."
        )


def work_on(ledger: Run, store: Store, request: Request, watch: Watch = lambda _: True) -> None:
    """Work on a run until its iterations are done, with their verdict, or ``watch`` says no.

    Then, where halves of the rows were asked for, on these. What the request gives of iterations,
    memory and halves is kept for the next time, as is the place of the store, once a first step is
    done: a request that is refused changes nothing. A run that is done keeps its cap; another one
    only has to hold it.

    Raises
    ------
    RunError, StoreError
        If the store is not the run's, or is replaced while the work goes on; what was committed
        before stays.
    UsageError, BudgetError
        If the rows cannot be halved so often, or the cap cannot hold the work.
    """
    plan = replace(Plan.of_run(ledger, store, request), watch=watch)
    n_halves = plan.request.halves or 0
    settled = {HALVES: n_halves} if n_halves != ledger.n_halves else {}
    if len(halves.halves_done(ledger, n_halves)) < n_halves:
        check_stages(plan.request.cap_nbytes, plan.stages())
        if not plan.check_halves():
            keep(ledger, settled)
            return
    search(ledger, plan, settled)
    if n_halves and is_done(ledger, int(ledger.meta("iterations"))):
        halves.select_by_halves(ledger, plan)
