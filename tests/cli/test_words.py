"""What a command says where a new user goes astray."""

import pytest
from command import error_of, json_of, srs_ooc
from stores import make_store, noise_table

import srs_ooc as package
from srs_ooc.base.errors import UsageError


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a folder")
    return make_store(folder / "my table.zarr", *noise_table(60, 80, n_relevant=2))


def test_a_command_misspelt_is_suggested():
    assert "Did you mean ingest" in error_of("ingst")
    assert "Did you mean" not in error_of("xyzzy")


def test_a_table_in_place_of_a_store_is_to_be_ingested_first(tmp_path):
    table = tmp_path / "my base.csv"
    table.write_text("a,b\n1,2\n")
    message = error_of("run", table)
    assert "ingest it first" in message
    assert f"srs-ooc ingest '{table}'" in message
    assert "damaged" not in message


@pytest.mark.few(1)
@pytest.mark.parametrize(("text", "count"), [("1e2", 100), ("1_00", 100), ("100", 100)])
def test_counts_are_taken_as_people_write_them(store, tmp_path, text, count):
    run = tmp_path / "a.run"
    srs_ooc("run", store, "--out", run, "--judge", "probe", "--iterations", text)
    assert json_of("status", run, "--json")["iterations"] == count


@pytest.mark.few(2)
@pytest.mark.parametrize("text", ["1.5", "many", "1e30", "nan", "0"])
def test_what_is_no_count_is_refused(store, tmp_path, text):
    message = error_of("run", store, "--out", tmp_path / "a.run", "--iterations", text)
    assert "--iterations" in message


def test_paths_with_spaces_are_quoted_in_suggested_commands(store):
    run = store.with_name("my first.run")
    said = srs_ooc("run", store, "--out", run, "--judge", "probe", "--iterations", 50).stdout
    assert f"srs-ooc features '{run}'" in said


@pytest.mark.slow
def test_a_run_without_its_verdict_says_so(store, tmp_path):
    from srs_ooc.runs.session import open_or_create, work_on
    from srs_ooc.runs.settling import Request
    from srs_ooc.runs.spec import Options
    from srs_ooc.store.store import Store

    run, opened = tmp_path / "half.run", Store.open(store)
    ledger = open_or_create(opened, run, Request(Options(judge="decoy"), iterations=200))
    work_on(ledger, opened, Request(memory_mb=4000), lambda step: step.done < 50)
    ledger.close()
    assert "no verdict yet" in srs_ooc("status", run).stdout
    message = error_of("export", store, run, tmp_path / "o.csv")
    assert "has none yet" in message
    assert f"srs-ooc resume {run}" in message


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["-", "x.npz", "x.xlsx"])
def test_names_that_promise_another_format_are_refused(store, tmp_path, name):
    run = tmp_path / "a.run"
    srs_ooc("run", store, "--out", run, "--judge", "probe", "--iterations", 20)
    assert "expected the name of a file" in error_of("export", store, run, name, cwd=tmp_path)
    assert not (tmp_path / name).exists()


def test_the_name_by_which_ledgers_keep_an_option_is_no_name_of_it(tmp_path):
    values, labels = noise_table(60, 40)
    store = make_store(tmp_path / "t.zarr", values, labels)
    config, run = tmp_path / "old.toml", tmp_path / "a.run"
    config.write_text("replays = 2\n")
    assert "--replays" in error_of("run", store, "--out", run, "--replays", 2)
    assert "replays" in error_of("run", store, "--out", run, "--config", config)
    with pytest.raises(UsageError, match=r"replays: expected an option.*srs_ooc\.options\(\)"):
        package.run(store, out=run, replays=2)
    assert not run.exists()
