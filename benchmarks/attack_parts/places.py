"""Places that refuse: folders where nothing may be written, and disks that are full."""

import os
import resource
import shutil
from functools import partial
from pathlib import Path

from attack_parts.ground import Tally, Words, finish, fresh, is_clear, must, table

OBEYS = ("setpriv", "--bounding-set=-dac_override")
"""Without this capability root keeps to permissions as everybody does."""


def places(tally: Tally, folder: Path, n_each: int, _: int) -> None:
    """Read where nothing may be written, and write where little fits."""
    store, run = folder / "t.zarr", folder / "t.run"
    source = table(folder)
    must("ingest", source, store)
    must("run", store, "--out", run, "--iterations", 200, "--q", 20, "--threads", 1)
    _read_only(tally, folder, store, run)
    _full(tally, folder, source, store, n_each)


def _read_only(tally: Tally, folder: Path, store: Path, run: Path) -> None:
    """Run every command that reads as one who may write nowhere."""
    commands: list[Words] = [
        ("features", run, "--csv"),
        ("status", run),
        ("inspect", store),
        ("inspect", store, "--verify"),
        ("verify", store),
        ("verify", run),
        ("compare", run, run),
        ("runs", folder),
        ("plan", store),
        ("scores", store, "--csv"),
        ("features", run, "--store", store),
    ]
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        for words in commands:
            done = finish(*words, prefix=OBEYS if os.geteuid() == 0 else (), cwd="/")
            tally.add("commands where nothing may be written")
            if done.returncode or is_clear(done):
                tally.breaks.append(f"read-only, {words[0]}: {done.stderr.strip()[:300]}")
    finally:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)


def _limit_files(nbytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, nbytes))


def _full(tally: Tally, folder: Path, source: Path, store: Path, n_each: int) -> None:
    """Have files end where the disk is full: at a limit on their size, from small to enough."""
    kept, run, out = folder / "kept.run", folder / "full.run", folder / "full.csv"
    must("run", store, "--out", kept, "--iterations", 40, "--q", 20, "--threads", 1)
    jobs: list[tuple[str, Words, Path]] = [
        ("ingest", ("ingest", source, folder / "full.zarr"), folder / "full.zarr"),
        ("export", ("export", store, kept, out, "--top", 200), out),
        ("ledger", ("run", store, "--out", run, "--iterations", 400, "--threads", 1), run),
    ]
    for name, words, target in jobs:
        for i in range(n_each):
            fresh(target)
            limit = int(1000 * 1.6**i)
            done = finish(*words, preexec_fn=partial(_limit_files, limit))
            tally.add(f"full disks under {name}")
            wrong = is_clear(done)
            if not wrong and done.returncode and target.exists() and name != "ledger":
                wrong = "left behind"
            if not wrong and done.returncode and name == "ledger" and target.exists():
                after = finish(*words)
                wrong = is_clear(after) or ("cannot go on" if after.returncode else "")
            if wrong:
                tally.breaks.append(f"full disk, {name} at {limit}: {wrong}")
    shutil.rmtree(kept)
