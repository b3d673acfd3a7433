"""What is broken, closed or interrupted ends in one message and a status, never in a traceback."""

import errno
import os
import signal
import struct
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from command import command_line, environment, error_of, srs_ooc
from stores import make_store, noise_table

from srs_ooc import cli
from srs_ooc.results import exporting

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

    monkeypatch.setattr(cli, "cli", SimpleNamespace(main=refuse))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(SystemExit) as ended:
        cli.main(["status", "t.run"])
    monkeypatch.undo()
    assert ended.value.code == 2
    assert "t.run: Too many open files" in capsys.readouterr().err


def test_an_interrupt_while_modules_load_is_one_message():
    """The module that is being loaded interrupts its own process, as Ctrl-C would.

    A parent in the background may have had the signal ignored.
    """
    for module in ("click", "numpy", "srs_ooc.planning.speed"):
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
