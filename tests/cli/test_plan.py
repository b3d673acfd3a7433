"""``srs-ooc plan``, and what `run` and `status` make of a plan."""

import re

import pytest
from command import error_of, json_of, srs_ooc
from stores import make_store, noise_table

from srs_ooc.runs.run import Run

NUMBERS = ("--n-rows", 72, "--n-features", 850_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    make_store(folder / "t.zarr", *noise_table(60, 150))
    return folder


@pytest.mark.slow
def test_a_plan_says_everything_and_writes_nothing(folder):
    before = sorted(folder.rglob("*"))
    said = srs_ooc("plan", "--memory-mb", 200, "--alpha", "0.3", cwd=folder).stdout
    assert sorted(folder.rglob("*")) == before
    for words in (
        "60 rows (classes of 30, 30), 150 features",
        "memory: 200 MB",
        "interpreter and libraries",
        "the store, mapped",
        "q = 100 features at a time; the cap holds up to 150",
        "9.0 kB of codes",
        "an iteration, measured",
        "with probability 0.99, while as many features are held as alpha 0.3 allows",
        "a feature that shows only in a subspace with certain others, which are found first",
        "SRS (0.3)",
        "is found less than half the time",
        "alpha 0.5 (this plan is for 0.3):",
        "judge tests:",
        "twice the memory, --q max",
    ):
        assert words in said


@pytest.mark.slow
def test_numbers_alone_will_do(tmp_path):
    asked = ("--memory-mb", 512, "--threads", 1, "--judge", "probe", "--json")
    values = json_of("plan", *NUMBERS, *asked, cwd=tmp_path)
    assert values["subspace_size"] == 42_500
    assert values["iterations"] == values["draws"]["every"] == 1562
    assert values["disk_mb"] == 61.2
    assert not values["seconds_measured"]
    assert values["power"]["half"] == pytest.approx(1.39, abs=0.005)
    assert [time["degree"] for time in values["degrees"]] == [0, 1, 2, 3]
    assert values["degrees"][2]["rs"] > 100 * values["degrees"][2]["srs"]
    said = srs_ooc("plan", *NUMBERS, cwd=tmp_path).stdout
    assert "classes of 36, 36, taken as equal" in said
    assert "an ESTIMATE" in said
    assert list(tmp_path.iterdir()) == []


def test_three_rows_see_nothing():
    said = srs_ooc("plan", "--n-rows", 3, "--n-features", 1000).stdout
    assert "no shift is found, however large: with 2 rows against 1" in said


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "found none"),
        (("--n-rows", 5), "no --n-features"),
        (("--n-features", 5), "no --n-rows"),
        (("none.zarr",), "nothing there"),
        (("none.zarr", *NUMBERS), "found both"),
        ((*NUMBERS, "--exclude-missing"), "found both"),
        ((*NUMBERS, "--n-classes", 73), "--n-classes"),
        (("--n-classes", 3), "--n-classes"),
        ((*NUMBERS, "--memory-mb", 60), "smallest cap that works"),
        ((*NUMBERS, "--alpha", "2"), "alpha"),
        ((*NUMBERS, "--q", 900_000), "--subspace-size"),
    ],
)
def test_what_cannot_be_planned_is_refused(tmp_path, arguments, words):
    assert words in error_of("plan", *arguments, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_run_without_iterations_takes_the_plans_and_says_so(folder, tmp_path):
    run = tmp_path / "a.run"
    asked = ("--q", 30, "--judge", "probe")
    done = srs_ooc("run", folder / "t.zarr", "--out", run, *asked)
    planned = json_of("plan", folder / "t.zarr", *asked, "--json")["iterations"]
    assert f"--iterations not given: {planned:,} (" in done.stderr
    status = json_of("status", run, "--json")
    assert status["iterations"] == status["iterations_asked"] == planned
    assert status["planned_iterations"] == planned
    assert status["planned_seconds_per_iteration"] > 0
    assert status["seconds_per_iteration"] == pytest.approx(status["seconds"] / planned, rel=0.01)
    said = srs_ooc("status", run).stdout
    told = (
        rf"planned +{planned:,} iterations, estimated at [\d.]+ ms each; the {planned:,} done took"
    )
    assert re.search(told, said)
    again = srs_ooc("run", folder / "t.zarr", "--out", run)
    assert "not given" not in again.stderr
    assert json_of("status", run, "--json")["iterations"] == planned


@pytest.mark.slow
def test_iterations_given_are_kept_to_and_compared(folder, tmp_path):
    run = tmp_path / "b.run"
    done = srs_ooc("run", folder / "t.zarr", "--out", run, "--q", 30, "--iterations", 7)
    assert "not given" not in done.stderr
    status = json_of("status", run, "--json")
    assert status["iterations"] == 7
    assert status["planned_iterations"] >= 1000


@pytest.mark.slow
def test_what_was_planned_is_no_part_of_the_identity(folder, tmp_path):
    run = tmp_path / "c.run"
    srs_ooc("run", folder / "t.zarr", "--out", run, "--q", 30, "--iterations", 7)
    ledger = Run(run, writable=True)
    ledger.set_meta("planned", None)
    ledger.close()
    srs_ooc("run", folder / "t.zarr", "--out", run, "--iterations", 9)
    status = json_of("status", run, "--json")
    assert (status["iterations"], status["planned_iterations"]) == (9, None)
    assert "planned     nothing" in srs_ooc("status", run).stdout
