"""What is broken, closed or interrupted ends in one message and a status, never in a traceback."""

import errno
import importlib
import inspect
import os
import re
import shlex
import signal
import struct
import subprocess
import sys
from types import SimpleNamespace

import click
import numpy as np
import pytest
from command import command_line, environment, error_of, json_of, srs_ooc
from stores import make_store, noise_table

from srs_ooc import cli as program
from srs_ooc.base.options import FLAGS
from srs_ooc.base.records import Step
from srs_ooc.cli import COMMANDS, EXAMPLES, GROUPS, cli
from srs_ooc.methods.networks.network_run import network_options, owner_of
from srs_ooc.results import exporting
from srs_ooc.results.live import RunProgress
from srs_ooc.samplers.base import method_of

HANGS = 3600


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crashes")
    values, labels = noise_table(40, 60)
    make_store(folder / "t.zarr", values, labels)
    options = ("--judge", "positive", "--iterations", 30, "--q", 10)
    srs_ooc("run", "t.zarr", *options, cwd=folder)
    return folder


def npy(path, shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(800))
    return path


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "shape", ["(-3, -4)", "(3, -4)", f"({10**21}, 2)", "(2, 3, 4)", "(100, 2)"]
)
def test_arrays_of_impossible_shapes_are_refused(tmp_path, shape):
    message = error_of("ingest", npy(tmp_path / "t.npy", shape), tmp_path / "t.zarr")
    assert "t.npy: expected" in message
    np.save(tmp_path / "x.npy", np.ones((4, 3)))
    target = npy(tmp_path / "y.npy", shape)
    options = ("--target-file", target)
    assert "y.npy: expected" in error_of(
        "ingest", tmp_path / "x.npy", tmp_path / "s.zarr", *options
    )


def test_archives_of_many_arrays_have_short_messages(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, **{f"a{i}": np.zeros(1) for i in range(3000)})
    assert len(error_of("ingest", path, tmp_path / "t.zarr")) < 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["a = " + "[" * 5000 + "]" * 5000, "a = " + "{b = " * 3000, "#" * 2_000_000]
)
def test_configs_that_are_nested_deeply_or_large_are_refused(folder, tmp_path, text):
    (tmp_path / "c.toml").write_text(text)
    message = error_of("run", "t.zarr", "--config", tmp_path / "c.toml", cwd=folder)
    assert "c.toml: expected a TOML file" in message
    assert len(message) < 1000


def shell(folder, arguments, redirection):
    line = " ".join([*map(str, command_line(*arguments)), redirection])
    return subprocess.run(
        line, shell=True, cwd=folder, env=environment(), capture_output=True, text=True,
        timeout=HANGS, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_closed_standard_streams_and_full_disks_are_said(folder):
    closed = shell(folder, ("features", "t.run", "--csv"), ">&-")
    assert closed.returncode == 2
    assert closed.stderr.startswith("srs-ooc: standard output is closed")
    silent = shell(folder, ("features", "t.run", "--csv"), "2>&-")
    assert (silent.returncode, silent.stderr) == (0, "")
    assert shell(folder, ("features", "none.run"), "2>&-").returncode == 2
    full = shell(folder, ("features", "t.run", "--csv"), "> /dev/full")
    assert full.returncode == 2
    assert "No space left" in full.stderr
    told_nothing = shell(folder, ("scores", "t.zarr", "--csv"), "2> /dev/full")
    told = shell(folder, ("scores", "t.zarr", "--csv"), "")
    assert (told_nothing.returncode, told_nothing.stdout) == (0, told.stdout)
    for done in (closed, full):
        assert "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("arguments", [("ingest", "-", "closed.zarr"), ("remove", "t.run")])
def test_a_closed_standard_input_is_an_empty_one(folder, arguments):
    closed = shell(folder, arguments, "<&-")
    empty = shell(folder, arguments, "< /dev/null")
    assert closed.returncode == 2
    assert closed.stderr == empty.stderr
    assert len(closed.stderr.splitlines()) == 1


def test_a_process_that_may_open_no_more_files_says_so(folder, monkeypatch, capsys):
    def refuse(*_, **__):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), "t.run")

    monkeypatch.setattr(program, "cli", SimpleNamespace(main=refuse))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(SystemExit) as ended:
        program.main(["status", "t.run"])
    monkeypatch.undo()
    assert ended.value.code == 2
    assert "t.run: Too many open files" in capsys.readouterr().err


def test_an_interrupt_while_modules_load_is_one_message():
    """The module that is being loaded interrupts its own process, as Ctrl-C would.

    A parent in the background may have had the signal ignored.
    """
    for module in ("click", "numpy", "srs_ooc.runs.session"):
        code = (
            "import os, runpy, signal, sys\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "class Finder:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            f"        if name == {module!r}:\n"
            "            sys.meta_path.remove(self)\n"
            "            os.kill(os.getpid(), signal.SIGINT)\n"
            "sys.meta_path.insert(0, Finder())\n"
            "sys.argv = ['srs-ooc', 'run', 'nowhere.zarr']\n"
            "runpy.run_module('srs_ooc', run_name='__main__')\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANGS, check=False
        )
        assert done.returncode == 128 + signal.SIGINT, done.stderr
        assert done.stderr.strip() == "srs-ooc: stopped; nothing was left half-written."


def test_a_scratch_file_that_ends_is_an_error(tmp_path):
    file = tmp_path / "scratch"
    file.write_bytes(np.arange(12.0).tobytes()[:-1])
    with file.open("rb") as raw:
        assert exporting.read_values(raw, 5, 3).tolist() == [3, 4, 5, 6, 7]
        with pytest.raises(OSError, match="ended early"):
            exporting.read_values(raw, 5, 7)


@pytest.mark.slow
def test_long_labels_are_texts_however_many_bytes_they_take(tmp_path):
    """Of labels that do not fit, what is said is of labels, not of numbers."""
    lines = "".join(f"{i},label{i % 9000}{'x' * 900}\n" for i in range(18_000))
    (tmp_path / "t.csv").write_text("a,target\n" + lines)
    message = error_of("ingest", tmp_path / "t.csv", tmp_path / "t.zarr")
    assert "labels of at most" in message
    assert "regression:" not in message


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


@pytest.mark.slow
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
    from srs_ooc.runs.request import Request
    from srs_ooc.runs.session import open_or_create, work_on
    from srs_ooc.store.store import Store

    run, opened = tmp_path / "half.run", Store.open(store)
    ledger = open_or_create(opened, run, Request(options={}, iterations=200))
    work_on(ledger, opened, Request(memory_mb=4000), lambda step: step.done < 50)
    ledger.close()
    said = srs_ooc("status", run).stdout.splitlines()
    assert [line[:12].strip() for line in said[:5]] == [
        "state",
        "selected",
        "iterations",
        "left",
        "next",
    ]
    assert "no verdict yet" in said[1]
    assert re.search("150 iterations, about .* of work, then the verdict", said[3])
    assert said[4].endswith(f"srs-ooc resume {run}")
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


LINE = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ")


@pytest.fixture
def shown(monkeypatch, capsys):
    """Return what a progress writes, each step half a minute after the one before."""
    clock = iter(range(0, 10_000, 30))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))

    def shown_by(shows):
        progress = RunProgress(512, shows)
        for done in (1, 2, 3, 4):
            progress.show(Step("screening", done, 4))
        for done in (10, 20):
            progress.show_bytes("reading", done, 20)
        progress.close()
        return capsys.readouterr().err.splitlines()

    return shown_by


@pytest.mark.parametrize("shows", [None, True])
def test_without_a_terminal_each_line_bears_the_time(shown, shows):
    lines = shown(shows)
    assert len(lines) >= 4
    assert [line for line in lines if not LINE.match(line)] == []
    assert any("of 4 iterations" in line for line in lines)
    assert any("reading" in line for line in lines)


def test_the_end_of_a_stage_is_said_once(monkeypatch, capsys):
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    progress = RunProgress(512, True)
    for done in (1, 2, 2, 2):
        progress.show(Step("round 2", done, 2, unit="models"))
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_count_that_begins_anew_has_a_time_left_of_its_own(monkeypatch, capsys):
    clock = iter(range(0, 10_000, 30))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    progress = RunProgress(512, True)
    for done in (80, 90, 10, 20):
        progress.show(Step("tests beside others", done, 100, unit="ways"))
    assert "20 of 100 ways, 0.33 a second, 240 s left" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("name", ["run", "plan"])
def test_help_has_options_in_sections(name):
    said = srs_ooc(name, "--help-all").stdout
    titles = re.findall("^([A-Z].*):$", said, re.MULTILINE)
    assert titles[:3] == ["Data and size", "Evidence", "Trees"]
    assert {"With --method srs", "With --method prs or rase", "With --method less"} < set(titles)
    parts = dict(zip(titles, re.split("^[A-Z].*:$", said, flags=re.MULTILINE)[1:], strict=True))
    assert "--alpha SHARE" in parts["With --method srs"]
    assert "With --method srs: " not in parts["With --method srs"]
    assert "--fdr LEVEL" in parts["Evidence"]
    assert "--help" in parts["Output"]
    assert "STORE]" not in said.partition("Data and size:")[2]
    spelled = [option.opts[0] for option in cli.get_command(None, name).params[1:]]
    for each in (flag.removeprefix("--with ") for flag in spelled):
        assert re.search(rf"^  .*{each}\b", said, re.MULTILINE), each


# Options without a flag of their own, which are given by --with.


@pytest.mark.parametrize(
    ("command", "method"), [("run", "prs"), ("plan", "rase"), ("network", "srs")]
)
def test_help_of_a_method_lists_its_keys_with_what_they_take(command, method):
    said = " ".join(srs_ooc(command, "--method", method, "--help").stdout.split())
    options = network_options() if command == "network" else method_of(method).options()
    own = [name for name in options if name not in FLAGS]
    if command == "network":
        own = [name for name in own if method in owner_of(name).split()]
    listed = said.partition(f"Of --method {method}, as --with KEY=VALUE: ")[2]
    for name in own:
        assert re.search(
            rf"(^| ){name}=\S+ .*?Takes {re.escape(options[name].kind.expected)}\.", listed
        )
    assert "Of --method" not in srs_ooc(command, "--help").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--with kep=5", "'--with keep'"),
        ("--alpha 2", "--alpha: expected a decimal number from 0 to 1"),
        ("--with keep=many", "keep: expected a whole number from 0 to "),
        ("--with=keep=many", "keep: expected a whole number from 0 to "),
        ("--with= 5", "--with: expected KEY=VALUE, found '5'"),
        ("--with center=maybe", "center: expected yes or no, found 'maybe'"),
        (
            "--with impurity=ginny",
            "impurity: expected one of gini, entropy, variance, found 'ginny'",
        ),
        ("--with keep", "requires an argument"),
        ("--with", "requires an argument"),
        ("--keep 5", "--keep: expected --with keep=VALUE, found what that was called before"),
        ("--no-center", "--no-center: expected --with center=VALUE"),
        ("--draw-block 3", "--draw-block: expected --with draw_block=VALUE"),
        ("--dask-scheduler-file x", "--dask-scheduler-file: expected --dask FILE"),
        ("--cache-mb 3", "--cache-mb: expected SRS_OOC_CACHE_MB in the environment"),
    ],
)
def test_a_wrong_key_or_value_or_an_old_spelling_is_refused_by_name(words, said):
    assert said in error_of("run", "no.zarr", *words.split())


def test_other_old_spellings_say_the_new_one():
    assert "--verify: expected `srs-ooc verify STORE`" in error_of("inspect", "no.zarr", "--verify")
    assert "--trees: expected --with trees=VALUE" in error_of("network", "no.zarr", "--trees", 3)
    assert "--rank: expected --with rank=VALUE" in error_of("scores", "no.zarr", "--rank", 3)


def test_help_of_a_network_has_sections():
    said = srs_ooc("network", "--help-all").stdout
    parts = re.split("^(?=[A-Z].*:$)", said, flags=re.MULTILINE)
    by_title = {part.partition(":")[0]: part for part in parts}
    assert "Options" not in by_title
    assert "--alpha SHARE" in by_title["With --method srs"]
    assert all(f"--{name} " in by_title["Output"] for name in ("out", "run", "safe-csv"))
    assert "$SRS_OOC_CACHE_MB" in srs_ooc("run", "--help-all").stdout


def test_every_command_that_shows_progress_can_be_quiet():
    with_progress = set()
    for name, (module, _) in COMMANDS.items():
        is_long = name not in ("predict", "targets")  # which share their module with one that is
        if is_long and "RunProgress" in inspect.getsource(importlib.import_module(module)):
            command = cli.get_command(None, name)
            with_progress.add(name)
            assert "-q" in {flag for option in command.params for flag in option.secondary_opts}, (
                name
            )
    assert with_progress > {"run", "ingest", "compact", "network"}


def test_quiet_shows_nothing(shown):
    assert shown(False) == []


LINES_AT_MOST = 30
"""Of a help that is one screen; most take 24."""


def flags_in(said):
    """The long flags that a help's rows of options begin with."""
    rows = re.findall(r"^  (-.*?)(?:  |$)", said, re.MULTILINE)
    return {flag for row in rows for flag in re.findall(r"--[\w-]+", row)}


def visible_flags(name):
    found = cli.get_command(None, name).params
    shown = [each for each in found if isinstance(each, click.Option) and not each.hidden]
    return shown, {flag for option in shown for flag in option.opts if flag.startswith("--")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ingest", "run", "features", "report", "plan", "network"])
def test_help_is_one_screen_and_all_options_are_one_option_away(name):
    said = srs_ooc(name, "--help").stdout
    assert said == srs_ooc(name, "-h").stdout
    lines = said.splitlines()
    assert len(lines) <= LINES_AT_MOST
    assert max(map(len, lines)) <= 80
    assert "\n  Examples:\n    srs-ooc " in said
    assert lines[0].startswith(f"Usage: srs-ooc {name} [OPTIONS]")
    options, flags = visible_flags(name)
    first = flags_in(said)
    assert first > {"--memory-mb"} or name in ("features", "report")
    assert first < flags
    keys = {flag for flag in flags if flag.startswith("--with ")}
    n_first = sum(bool(first & set(option.opts)) for option in options)
    others = f"the other {len(options) - len(keys) - n_first} options{' and all keys' * bool(keys)}"
    last = f"`srs-ooc {name} --help-all` lists {others} and says more."
    assert " ".join(said.split()).endswith(last)
    everything = srs_ooc(name, "--help-all").stdout
    assert flags_in(everything) >= flags - keys | {"--help-all", "--help"}
    assert all(f"  {key.removeprefix('--with ')}=" in everything for key in keys)
    assert " ".join(lines[2].split()) in " ".join(everything.split())


def test_a_short_help_has_the_first_sentence_and_the_default():
    said = " ".join(srs_ooc("run", "--help").stdout.split())
    assert "--iterations T Iterations in total. [default: 1000 to 10000] --seed" in said
    assert "--adjust NAMES Covariates of the store to adjust for" in said
    assert "With --judge tests" not in said
    whole = " ".join(srs_ooc("run", "--help-all").stdout.split())
    assert "Iterations in total. Those already done are included." in whole


def test_a_help_that_was_one_screen_has_no_other():
    assert "No such option '--help-all'" in error_of("status", "--help-all")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("words", "which"),
    [
        (["run", "--nonsense"], "srs-ooc run --help-all"),
        (["report", "x.run", "--format", "doc"], "srs-ooc report --help-all"),
        (["features"], "srs-ooc features --help"),
        (["status", "--nonsense"], "srs-ooc status --help"),
        (["--nonsense"], "srs-ooc --help"),
        (["theory", "chain"], "srs-ooc theory --help"),
    ],
)
def test_a_wrong_option_or_a_missing_argument_names_the_help_to_read(words, which):
    assert error_of(*words).endswith(f" See `{which}`.")


def test_one_path_to_ingest_gets_a_command_to_copy():
    assert error_of("ingest", "a b.csv").endswith("Name both: srs-ooc ingest 'a b.csv' 'a b.zarr'")
    assert error_of("ingest", "t.zarr").endswith("Name both: srs-ooc ingest TABLE t.zarr")
    assert "Missing argument 'STORE'. See `srs-ooc ingest --help`." in error_of("ingest")


def test_the_program_alone_shows_a_first_session_that_works_as_printed(tmp_path):
    done = srs_ooc()
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert all(f"`srs-ooc {words}`" in lines[-1] for words in ("--help", "COMMAND --help"))
    commands = [line.strip().split("  ")[0] for line in lines if line.startswith("  srs-ooc ")]
    *session, table = [shlex.split(command)[1:] for command in commands]
    assert [words[0] for words in session] == ["ingest", "run", "features", "report"]
    assert table[: table.index("--rows")] == ["synth", "madelon", "data.csv"]
    small = {"--rows": "60", "--features": "30", "--relevant": "4"}
    before = ["", *table[:-1]]
    replaced = [small.get(flag, word) for flag, word in zip(before, table, strict=True)]
    assert len(set(replaced) - set(table)) == len(small)
    for words in (replaced, *session):
        srs_ooc(*words, cwd=tmp_path)
    assert (tmp_path / "data.html").is_file()


def test_help_lists_every_command_in_a_group():
    assert sorted(" ".join(GROUPS.values()).split()) == sorted(COMMANDS)
    said = srs_ooc("--help").stdout
    rows = dict(re.findall(r"^  (\w+) +(.*)$", said, re.MULTILINE))
    assert all(rows[name] == summary for name, (_, summary) in COMMANDS.items())
    assert all(f"\n{title}:\n" in said for title in GROUPS)


def test_every_command_has_examples_that_its_options_allow():
    for name in COMMANDS:
        shown = cli.get_command(None, name).epilog.removeprefix(EXAMPLES).replace("\\\n", "")
        for line in shown.strip().splitlines():
            words = shlex.split(line.partition(" > ")[0])
            assert words.pop(0) == "srs-ooc"
            context = click.Context(cli, **cli.context_settings)  # help is made once in a process
            _, command, rest = cli.resolve_command(context, words)
            command.make_context(name, rest, context).close()


def test_the_shell_completes_commands_and_options(monkeypatch, capsys):
    def completions(*words):
        monkeypatch.setenv("_SRS_OOC_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(["srs-ooc", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        with pytest.raises(SystemExit):
            cli.main([], prog_name="srs-ooc")
        return capsys.readouterr().out.split()

    assert "plain,ingest" in completions("in")
    assert "plain,--memory-mb" in completions("run", "--mem")
    assert "plain,--help-all" in completions("run", "--help")
    assert "plain,--halves" in completions("run", "--hal")  # which the short help leaves out
