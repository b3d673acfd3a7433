"""Kills and interrupts at random moments; what was stopped is finished, and compared."""

import os
import re
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from attack_parts.forks import Words, finish, kill_after
from attack_parts.ground import (
    METHODS,
    NETWORKS,
    Tally,
    digest,
    fresh,
    lasting,
    left_behind,
    must,
    table,
    unclear,
)

ENDLESS = "with recursive c(n) as (select 1 union all select n + 1 from c) select max(n) from c"
"""A query of SQLite that does not end."""
IN_A_ROW = 3
"""Kills of one thing that goes on, before it may end."""


@dataclass(frozen=True)
class Job:
    """A command that is killed.

    Attributes
    ----------
    words : Words
        The command.
    answer : callable
        What an undisturbed one comes to.
    made : tuple of Path
        What it makes, and what is removed before it begins anew.
    whole : Path, optional
        What must be complete, or not be there, after a kill.
    """

    words: Words
    answer: Callable[[], str]
    made: tuple[Path, ...] = ()
    whole: Path | None = None


def kills(tally: Tally, folder: Path, n_each: int) -> None:
    """Kill each command so many times."""
    for name, job in _jobs(folder):
        left = tally.left(name, n_each if job.whole else -(-n_each // IN_A_ROW))
        if not left:
            continue
        seconds, expected = _undisturbed(job), job.answer()
        for i in left:
            with tally.attack(name, i) as random:
                _kill(tally, random, name, job, seconds, expected)


def _undisturbed(job: Job) -> float:
    """Return the seconds of the second of two undisturbed ones, for which all is loaded."""
    seconds = 0.0
    for _ in range(2):
        for path in job.made:
            fresh(path)
        begin = time.monotonic()
        must(*job.words)
        seconds = time.monotonic() - begin
    return seconds


def _kill(tally: Tally, random: Random, name: str, job: Job, seconds: float, expected: str) -> None:
    for path in job.made:
        fresh(path)
    for _ in range(1 if job.whole else IN_A_ROW):
        moment = random.uniform(0.005, seconds)
        command, _, what = name.partition(" ")
        tally.add(f"kills of `{command}`: {what or 'all'}", kill_after(job.words, moment))
        if job.whole and job.whole.exists() and job.answer() != expected:
            tally.breaks.append(f"{name} killed after {moment:.3f} s: what is there differs")
        if name.startswith("run "):
            _look(tally, name, job.made[0], moment)
    if job.whole:
        fresh(job.whole)
        fresh(job.whole.with_name(f"{job.whole.name}.truth.json"))
    done = finish(*job.words)
    left = left_behind(job.made[0].parent) if job.made else []
    if done.status != 0:
        tally.breaks.append(f"{name}: does not go on: {done.status}: {done.err[:300]}")
    elif job.answer() != expected or left:
        tally.breaks.append(f"{name}: another result after kills, or left behind: {left}")


def _look(tally: Tally, name: str, run: Path, moment: float) -> None:
    """Read a run that was killed: a run is there, whole, or it is none."""
    ends = {}
    for command in ("status", "features", "verify"):
        done = finish(command, run)
        tally.add("looks at what was killed")
        ends[command] = done.status
        if wrong := unclear(done):
            tally.breaks.append(f"{name} killed after {moment:.3f} s, {command}: {wrong}")
    if len(set(ends.values())) > 1:
        tally.breaks.append(f"{name} killed after {moment:.3f} s: {ends}")


def _jobs(folder: Path) -> Iterator[tuple[str, Job]]:
    source, store = table(folder, 300, 400), folder / "t.zarr"
    must("ingest", source, store)
    yield from _ingests(folder, source)
    places = {}
    for name, options in METHODS.items():
        places[name] = run = _inside(folder, f"run-{name}") / "k.run"
        words = ("run", store, "--out", run, "--threads", 1, *options)
        yield f"run {name}", Job(words, partial(result_of, run), (run,))
    narrow = folder / "narrow.zarr"
    must("ingest", table(folder, 60, 60, "narrow.csv"), narrow)
    for name, options in NETWORKS.items():
        out = _inside(folder, f"network-{name}") / "e.csv"
        kept = out.with_name("e.csv.network")
        words = ("network", narrow, "--out", out, "--threads", 1, *options)
        yield f"network {name}", Job(words, partial(digest, out), (out, kept))
    yield from _readers(folder, store)


def stops(tally: Tally, folder: Path, n_each: int) -> None:
    """Send SIGINT and SIGTERM, as Ctrl-C and the system do: one message, and nothing is left."""
    source, store, database = table(folder, 300, 4_000), folder / "t.zarr", folder / "t.sqlite"
    must("ingest", source, store)
    with sqlite3.connect(database) as connection:
        connection.execute("create table t (id text, x double, y double)")
        rows = ((f"r{i}", i, i) for i in range(20))
        connection.executemany("insert into t values (?, ?, ?)", rows)
    out = _inside(folder, "stops") / "k.zarr"
    query = f"select id, x, y, ({ENDLESS}) as z from t"  # noqa: S608
    _stop(tally, n_each, "an endless query", ("ingest", database, out, "--query", query), out)
    _stop(tally, n_each, "ingest", ("ingest", source, out), out)
    run = out.with_name("k.run")
    words = ("run", store, "--out", run, "--iterations", 3_000)
    _stop(tally, n_each, "run", words, run, leaves=True)


def _stop(
    tally: Tally, n_each: int, what: str, words: Words, out: Path, *, leaves: bool = False
) -> None:
    for i in tally.left(what, n_each):
        with tally.attack(what, i) as random:
            number = random.choice([signal.SIGINT, signal.SIGTERM])

            def send(pid: int, wait: float = random.uniform(0.05, 1), sent: int = number) -> None:
                time.sleep(wait)
                os.kill(pid, sent)

            fresh(out)
            done = finish(*words, before=_heeds_interrupts, meanwhile=send)
            tally.add(f"interrupts: {what}")
            is_well = done.status == 128 + number or (done.status == 0 and "query" not in what)
            is_left = left_behind(out.parent) or (out.exists() and done.status != 0 and not leaves)
            if not is_well or is_left or "Traceback" in done.err:
                tally.breaks.append(f"{what}: {number}: {done.status} {is_left} {done.err[:300]}")


def _heeds_interrupts() -> None:
    """Have Ctrl-C end this process, as in a terminal: jobs in the background ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _inside(folder: Path, name: str) -> Path:
    (folder / name).mkdir(exist_ok=True)
    return folder / name


def _ingests(folder: Path, source: Path) -> Iterator[tuple[str, Job]]:
    texts = folder / "texts.csv"
    texts.write_text(re.sub(r"-?\d+\.(\d)\d*", r"v\1", source.read_text()))
    for name, path in (("numbers", source), ("categories", texts)):
        out = _inside(folder, f"ingest-{name}") / "k.zarr"
        yield f"ingest {name}", Job(("ingest", path, out), partial(digest, out), (out,), out)
    pieces = [table(folder, 300, 100, "a.csv"), folder / "b.csv"]
    lines = [line.split(",") for line in pieces[0].read_text().splitlines()]
    renamed = [[f"g{i}" for i in range(len(lines[0]) - 1)], *(line[:-1] for line in lines[1:])]
    pieces[1].write_text("".join(",".join(line) + "\n" for line in renamed))
    out = _inside(folder, "pieces") / "k.zarr"
    words: Words = ("ingest", *pieces, out, "--target", "y")
    kept = out.with_name("k.zarr.pieces")
    yield "ingest in pieces", Job(words, partial(digest, out), (out, kept), out)
    table_out = _inside(folder, "synth") / "k.csv"
    truth = table_out.with_name("k.csv.truth.json")
    words = ("synth", "madelon", table_out, "--rows", 300, "--features", 300, "--relevant", 5)
    yield "synth", Job(words, partial(digest, table_out), (table_out, truth), table_out)


def _readers(folder: Path, store: Path) -> Iterator[tuple[str, Job]]:
    runs = {}
    for name in ("tests", "trees"):
        runs[name] = run = _inside(folder, f"read-{name}") / "k.run"
        if not run.exists():
            must("run", store, "--out", run, "--threads", 1, *METHODS[name])
    for kind in ("csv", "parquet", "zarr"):
        out = _inside(folder, f"export-{kind}") / f"k.{kind}"
        words: Words = ("export", store, runs["tests"], out, "--top", 50)
        yield f"export {kind}", Job(words, partial(digest, out), (out,), out)
    for name, run in runs.items():
        answer = partial(result_of, run)
        yield f"verify of {name}", Job(("verify", run), answer)
        yield f"features of {name}", Job(("features", run, "--csv"), answer)
        for kind in ("json", "md"):
            out = _inside(folder, f"report-{name}") / f"k.{kind}"
            words = ("report", run, "-o", out)
            yield f"report {kind} of {name}", Job(words, partial(_text, out), (out,), out)
    yield from _further(folder, store, runs)


def _further(folder: Path, store: Path, runs: dict[str, Path]) -> Iterator[tuple[str, Job]]:
    words: Words = ("compact", runs["tests"], "--folds", 2, "--threads", 1, "--csv")
    kept = runs["tests"] / "compact"
    yield "compact", Job(words, lambda: lasting(must(*words)), (kept,))
    out = _inside(folder, "predict") / "k.csv"
    predict = ("predict", runs["trees"], folder / "t.csv", out)
    yield "predict", Job(predict, partial(digest, out), (out,), out)
    asked: Words = ("sensitivity", runs["trees"], "--csv")
    yield "sensitivity", Job(asked, lambda: must(*asked) + result_of(runs["trees"]))
    yield "scores", Job(("scores", store, "--csv"), partial(digest, store))


def _text(out: Path) -> str:
    return lasting(out.read_text())


def result_of(run: Path) -> str:
    """Return what a run says of every feature, and its trees."""
    return must("features", run, "--csv") + digest(run / "trees.bin")
