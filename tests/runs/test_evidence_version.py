"""The version of the evidence that a run was begun under, and that its verdict is of."""

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import error_of, json_of, srs_ooc

from srs_ooc.base.errors import RunError
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.evidence.judges import EVIDENCE, STAGES
from srs_ooc.runs.inputs import Inputs, spec_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.resources import decoy_families
from srs_ooc.runs.run_verdict import CONCLUSION
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.survey import BESTS
from srs_ooc.runs.task import Task
from srs_ooc.store.store import Store

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "format-2" / "runs.zip"
"""Runs of the first version; its README says where each was interrupted."""


@pytest.fixture
def old(tmp_path):
    with zipfile.ZipFile(ARCHIVE) as packed:
        packed.extractall(tmp_path)
    return tmp_path


def read(run, meta=None):
    ledger = Ledger(run, writable=False)
    try:
        return spec_of(ledger) if meta is None else ledger.meta(meta)
    finally:
        ledger.close()


def note(run, name, value):
    ledger = Ledger(run, writable=True)
    ledger.set_meta(name, value)
    ledger.close()


@pytest.mark.slow
def test_a_new_run_is_of_this_version_and_says_so_once_it_has_a_verdict(old):
    run = old / "new.run"
    srs_ooc("run", old / "store", "--out", run, "--q", 30, "--iterations", 20)
    assert read(run).to_json()["evidence"] == EVIDENCE
    assert read(run, CONCLUSION)["evidence"] == EVIDENCE
    assert "version" not in srs_ooc("resume", run).stdout


def test_an_identity_without_a_version_is_of_the_first(old):
    record = read(old / "run-in-screen", "spec")
    assert "evidence" not in record
    assert RunSpec.from_json(record).evidence == 1


@pytest.mark.slow
def test_an_unfinished_run_keeps_its_decoys_and_its_closing_stage(old):
    run = old / "run-in-closing"
    assert read(run).stages == 1
    srs_ooc("resume", run)
    assert (read(run).stages, read(run).evidence) == (1, EVIDENCE)
    assert read(run, "spec")["stages"] == 1
    srs_ooc("run", old / "store", "--out", old / "new.run", "--q", 30, "--iterations", 20)
    assert read(old / "new.run").stages == STAGES > 1


def test_families_of_the_first_version_are_pairings_of_their_own(old):
    store = Store.open(old / "store")
    begun = read(old / "run-in-screen")
    begun = replace(begun, judging=replace(begun.judging, decoys=3))
    task = Task.of_run(begun, store, Inputs())
    found = decoy_families(begun, task)
    for number, family in enumerate(found):
        expected = task.exchangeability().involution(key_of(begun.seed, Purpose.DECOYS, number))
        np.testing.assert_array_equal(family, expected)
    assert begun.n_copies_apart == 1
    now = replace(begun, stages=STAGES)
    assert now.n_copies_apart == 4
    first, second, third = decoy_families(now, task)
    np.testing.assert_array_equal(first[second], third)


def test_runs_without_a_final_verdict_have_no_version(old):
    assert "evidence" not in read(old / "run-with-trees-in-screen").to_json()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["run-in-screen", "run-in-closing", "run-in-replay"])
def test_an_unfinished_run_is_finished_by_this_version_and_says_so(old, name):
    shown = srs_ooc("resume", old / name).stdout
    assert "begun under version 1" in shown
    assert f"all of its verdict is by version {EVIDENCE}" in " ".join(shown.split())
    assert read(old / name).evidence == EVIDENCE


@pytest.mark.slow
def test_a_finished_run_is_read_as_it_is_and_says_by_what_it_was_judged(old):
    run = old / "run-finished"
    before = json_of("features", run, "--json")
    assert "by version 1 of the evidence" in srs_ooc("resume", run).stdout
    assert json_of("features", run, "--json") == before
    assert read(run).evidence == 1


@pytest.mark.slow
def test_a_finished_run_taken_further_is_judged_by_this_version(old):
    run = old / "run-finished"
    srs_ooc("resume", run, "--iterations", 130)
    assert read(run, CONCLUSION)["evidence"] == EVIDENCE
    assert read(run).evidence == EVIDENCE


@pytest.mark.slow
def test_permutation_runs_done_before_are_tested_anew_and_keep_their_scores(old):
    """No strength of one version is compared with one of another."""
    run = old / "run-in-replay"
    ledger = Ledger(run, writable=False)
    held = ledger.read_arrays(BESTS)
    ledger.close()
    assert len(held["bests"]) == 1
    assert "evidence" not in held
    srs_ooc("resume", run)
    ledger = Ledger(run, writable=False)
    anew = ledger.read_arrays(BESTS)
    ledger.close()
    assert anew["bests"][0, 0] == held["bests"][0, 0]
    assert anew["bests"][0, 1] != held["bests"][0, 1]
    assert int(anew["evidence"]) == EVIDENCE


@pytest.mark.slow
def test_a_run_of_a_later_version_is_read_and_refused_by_name_where_it_would_be_judged(old):
    run = old / "run-in-closing"
    note(run, "spec", read(run, "spec") | {"evidence": EVIDENCE + 1})
    assert json_of("status", run, "--json")["state"] == "stopped"
    message = error_of("resume", run)
    assert str(run) in message
    assert f"found version {EVIDENCE + 1}" in message


@pytest.mark.parametrize("version", ["two", None, [2]])
def test_a_version_that_is_no_number_is_damage(old, version):
    record = read(old / "run-in-screen", "spec") | {"evidence": version}
    with pytest.raises(RunError, match="damaged"):
        RunSpec.from_json(record)
