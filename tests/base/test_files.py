"""A published folder or file appears complete or not at all, wherever its writer died."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from srs_ooc.base import files
from srs_ooc.base.errors import StoreError
from srs_ooc.base.files import (
    MARKER,
    SCRATCH_SUFFIX,
    published_file,
    published_folder,
    release_lock,
    try_lock,
)

WRITER = """
import sys, time
from pathlib import Path
from srs_ooc.base import files as atomic
target = Path(sys.argv[2])
with getattr(atomic, sys.argv[1])(target) as scratch:
    place = scratch / "half" if scratch.is_dir() else scratch
    place.write_text("half")
    print("ready", flush=True)
    sys.stdin.readline()
"""


def write(scratch, text="whole"):
    (scratch / "data" if scratch.is_dir() else scratch).write_text(text)


def read(target):
    return (target / "data" if target.is_dir() else target).read_text()


def entries(folder):
    return sorted(path.name for path in folder.iterdir())


def publish_text(publish, target, text="whole", error=None, **how):
    with publish(target, **how) as scratch:
        write(scratch, text)
        if error is not None:
            raise error


@pytest.fixture(params=[published_folder, published_file], ids=["folder", "file"])
def publish(request):
    return request.param


PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}


@pytest.fixture
def writer(publish, tmp_path):
    """A process that is half-way through publishing ``tmp_path / "out"``."""
    words = [sys.executable, "-c", WRITER, publish.__name__, str(tmp_path / "out")]
    with subprocess.Popen(words, cwd=tmp_path, **PIPES) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_success_publishes_and_leaves_nothing_else(publish, tmp_path):
    target = tmp_path / "out"
    with publish(target) as scratch:
        write(scratch)
        assert not target.exists()
    assert read(target) == "whole"
    assert entries(tmp_path) == ["out"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_nothing(publish, tmp_path, error):
    with pytest.raises(error):
        publish_text(publish, tmp_path / "out", error=error)
    assert entries(tmp_path) == []


def test_an_existing_target_is_kept(publish, tmp_path):
    target = tmp_path / "out"
    publish_text(publish, target, "first")
    with pytest.raises(FileExistsError, match="exists"), publish(target):
        pytest.fail("entered")
    assert read(target) == "first"
    assert entries(tmp_path) == ["out"]


def test_a_missing_parent_is_an_error(publish, tmp_path):
    with pytest.raises(FileNotFoundError), publish(tmp_path / "nowhere" / "out"):
        pytest.fail("entered")
    assert entries(tmp_path) == []


def test_what_a_killed_writer_left_is_cleared(publish, tmp_path, writer):
    target = tmp_path / "out"
    os.kill(writer.pid, signal.SIGKILL)
    assert writer.wait() == -signal.SIGKILL
    assert entries(tmp_path) == [f"out{SCRATCH_SUFFIX}"]
    with publish(target) as scratch:
        left = [name for name in entries(scratch) if name != MARKER] if scratch.is_dir() else []
        assert left == []
        assert scratch.is_dir() or scratch.read_text() == ""
        write(scratch)
    assert read(target) == "whole"
    assert entries(tmp_path) == ["out"]
    if target.is_dir():
        assert entries(target) == ["data"]


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_somebody_elses_folder_in_the_scratch_folders_place_is_left_alone(tmp_path, kind):
    theirs = tmp_path / f"out{SCRATCH_SUFFIX}"
    if kind == "folder":
        theirs.mkdir()
    else:
        (tmp_path / "elsewhere").mkdir()
        theirs.symlink_to(tmp_path / "elsewhere")
    (theirs / "thesis.txt").write_text("years")
    with pytest.raises(FileExistsError), published_folder(tmp_path / "out"):
        pytest.fail("entered")
    assert (theirs / "thesis.txt").read_text() == "years"


def test_a_second_writer_is_refused_and_the_first_goes_on(publish, tmp_path, writer):
    target = tmp_path / "out"
    with pytest.raises(FileExistsError, match="being written"), publish(target):
        pytest.fail("entered")
    writer.communicate("go on\n")
    assert writer.returncode == 0
    assert entries(tmp_path) == ["out"]
    assert (target / "half" if target.is_dir() else target).read_text() == "half"


def test_losing_a_race_leaves_the_winner(publish, tmp_path, monkeypatch):
    """Another writer publishes between this one's first look and its lock."""
    target = tmp_path / "out"
    lock_after = files.try_lock

    def lock_late(path, *, flags):
        monkeypatch.setattr(files, "try_lock", lock_after)
        publish_text(publish, target, "winner")
        if publish is published_folder:
            path.mkdir()
        return lock_after(path, flags=flags)

    monkeypatch.setattr(files, "try_lock", lock_late)
    with pytest.raises(FileExistsError), publish(target):
        pytest.fail("entered")
    assert read(target) == "winner"
    assert entries(tmp_path) == ["out"]


def test_a_lock_on_what_was_renamed_meanwhile_is_no_lock(publish, tmp_path, monkeypatch):
    """Another writer finishes after this one opened the scratch and before it had the lock."""
    target = tmp_path / "out"
    lock_after = files.try_lock

    def lock_and_lose(path, *, flags):
        handle = lock_after(path, flags=flags)
        write(path, "winner")
        path.rename(target)
        return handle

    monkeypatch.setattr(files, "try_lock", lock_and_lose)
    with pytest.raises(FileExistsError, match="meanwhile"), publish(target):
        pytest.fail("entered")
    assert read(target) == "winner"
    assert entries(tmp_path) == ["out"]


def test_a_lock_is_exclusive_until_released(tmp_path):
    first = try_lock(tmp_path / "lock")
    assert first is not None
    assert try_lock(tmp_path / "lock") is None
    release_lock(first)
    release_lock(first)  # no longer its own
    second = try_lock(tmp_path / "lock")
    assert second is not None
    release_lock(second)


LOCKER = """
import os, sys
from contextlib import suppress
from pathlib import Path
from srs_ooc.base.files import published_folder, release_lock, try_lock

def answer(what):
    os.write(out, what.encode() + b"\\n")

lock, (ours, out), (inn, theirs) = try_lock(Path("lock")), os.pipe(), os.pipe()
with suppress(KeyError), published_folder(Path("out")) as scratch:
    child = os.fork()
    if not child:
        if sys.argv[1] == "released":
            release_lock(lock)
        answer(str(try_lock(Path("lock"))))
        raise KeyError("the child goes its own way, through all that its parent began")
    print(os.read(ours, 99).decode().strip(), flush=True)
    while how := sys.stdin.readline().strip():
        if how == "release":
            release_lock(lock)
        elif how == "wait":
            os.close(theirs)
            os.waitpid(child, 0)
        print(how, scratch.exists(), flush=True)
if not child:
    os.close(theirs)
    os.read(inn, 1)
    if sys.argv[1] == "killed":
        sys.stdin.readline()  # outlives its parent
"""


@pytest.mark.parametrize("ends", ["released", "killed"])
def test_a_child_by_fork_neither_keeps_nor_releases_a_lock(tmp_path, ends):
    words = [sys.executable, "-W", "ignore", "-c", LOCKER, ends]
    with subprocess.Popen(words, cwd=tmp_path, **PIPES) as parent:

        def said(what):
            parent.stdin.write(f"{what}\n")
            parent.stdin.flush()
            return str(parent.stdout.readline().strip())

        assert parent.stdout.readline() == "None\n"  # the child asked for it, too
        assert try_lock(tmp_path / "lock") is None
        if ends == "released":
            assert said("release") == "release True"  # what the parent makes is not removed
        else:
            parent.kill()
            parent.wait()
        lock = try_lock(tmp_path / "lock")
        assert lock is not None, "the child, which lives, keeps it"
        release_lock(lock)
        if ends == "released":
            assert said("wait") == "wait True"
            parent.communicate("\n")
            assert entries(tmp_path) == ["lock", "out"]


def test_a_file_may_be_replaced_all_at_once(tmp_path):
    target = tmp_path / "out"
    target.write_text("before")
    with published_file(target, replaces=True) as scratch:
        scratch.write_text("after")
        assert target.read_text() == "before"
    assert target.read_text() == "after"
    with pytest.raises(KeyError), published_file(target, replaces=True) as scratch:
        raise KeyError
    assert entries(tmp_path) == ["out"]
    assert target.read_text() == "after"


def test_a_file_made_while_another_is_published_to_its_place_stays(tmp_path):
    target = tmp_path / "out"
    with pytest.raises(FileExistsError), published_file(target):
        target.write_text("theirs")
    assert entries(tmp_path) == ["out"]
    assert target.read_text() == "theirs"


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_folder_is_replaced_whole_when_the_new_one_is_complete(
    tmp_path, monkeypatch, can_exchange
):
    if not can_exchange:
        monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: object())
    target = tmp_path / "out"
    for text in ("first", "second"):
        with published_folder(target, replaces=True) as scratch:
            write(scratch, text)
            assert not target.exists() or read(target) == "first"
    assert read(target) == "second"
    assert entries(tmp_path) == ["out"]
    assert entries(target) == ["data"]


def test_a_folder_that_could_not_be_replaced_is_kept(tmp_path):
    publish_text(published_folder, tmp_path / "out", "first")
    with pytest.raises(KeyError):
        publish_text(published_folder, tmp_path / "out", "second", KeyError, replaces=True)
    assert read(tmp_path / "out") == "first"
    assert entries(tmp_path) == ["out"]


def test_what_was_replaced_and_cannot_be_removed_is_named_beside_the_new_one(tmp_path, monkeypatch):
    def refuse(path):
        raise OSError(errno.EDQUOT, "Disk quota exceeded", str(path))

    target, left = tmp_path / "out", tmp_path / "out.partial"
    with published_folder(target) as scratch:
        write(scratch, "first")
        (scratch / "part").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", refuse)
        with pytest.raises(StoreError, match=f"whole, but the old one .* quota .*: {left}") as said:
            publish_text(published_folder, target, "second", replaces=True)
    assert str(target) in str(said.value)
    assert read(target) == "second"
    assert entries(target) == ["data"]
    assert (left / MARKER).exists()
    publish_text(published_folder, target, "second", replaces=True)
    assert entries(tmp_path) == ["out"]


def test_a_writer_killed_as_folders_trade_places_leaves_one_that_is_whole(tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def die(_):
        raise Killed

    target = tmp_path / "out"
    publish_text(published_folder, target, "first")
    with monkeypatch.context() as patch:
        patch.setattr(files, "_remove", die)  # both after the exchange and in clearing up
        with pytest.raises(Killed), published_folder(target, replaces=True) as scratch:
            (scratch / "data").write_text("second")
    assert read(target) == "second"
    publish_text(published_folder, target, "third", replaces=True)
    assert read(target) == "third"
    assert entries(tmp_path) == ["out"]
