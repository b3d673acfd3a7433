"""The versions that a verdict is of: part of a run's identity, and others are refused by name."""

import shutil

import pytest
from command import error_of, json_of, srs_ooc
from ledgers import change, changed_fact
from stores import make_store, noise_table

from srs_ooc.base.errors import RunError
from srs_ooc.evidence.judges import VERSIONS
from srs_ooc.runs.inputs import spec_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.run_verdict import CONCLUSION
from srs_ooc.runs.spec import RunSpec


def read(run, meta=None):
    ledger = Ledger(run, writable=False)
    try:
        return spec_of(ledger) if meta is None else ledger.meta(meta)
    finally:
        ledger.close()


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("versions")
    make_store(folder / "t.zarr", *noise_table(60, 80, n_relevant=2))
    srs_ooc("run", folder / "t.zarr", "--out", folder / "a.run", "--q", 30, "--iterations", 20)
    return folder / "a.run"


def test_a_run_with_a_verdict_says_of_which_versions_it_is(done):
    assert {name: read(done).to_json()[name] for name in VERSIONS} == VERSIONS
    assert read(done, CONCLUSION)["evidence"] == VERSIONS["evidence"]


def test_a_run_without_a_final_verdict_has_no_version(done):
    record = read(done, "spec") | {"judge": "probe", "probe_min_draws": 10, "probe_min_wins": "0.9"}
    assert not RunSpec.from_json(record | dict.fromkeys(VERSIONS, 1)).to_json().keys() & VERSIONS


OTHERS = [
    *(("evidence", version) for version in (None, 1, 2, 3, 5, "two")),
    *(("stages", version) for version in (None, 1, 2, 4)),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "version"), OTHERS)
def test_a_run_of_another_version_is_refused_by_name_with_the_remedy(done, tmp_path, name, version):
    run, record = shutil.copytree(done, tmp_path / "a.run"), read(done, "spec")
    del record[name]
    change(run, changed_fact("spec", record if version is None else record | {name: version}))
    found = f"version {VERSIONS[name]} of its {name}, found version {version or 1!r}"
    with pytest.raises(RunError, match=f"a.run: expected a run of {found}"):
        read(run)
    for command in ("status", "features", "resume"):
        message = error_of(command, run)
        assert found in message
        assert "start the run again in another folder" in message


def test_the_copy_as_it_was_is_read(done, tmp_path):
    run = shutil.copytree(done, tmp_path / "a.run")
    change(run, changed_fact("spec", read(done, "spec")))
    assert json_of("status", run, "--json")["state"] == "finished"
