"""Puts each fault that was mended back: which test catches it, and in which suite.

    .venv/bin/python benchmarks/research/put_back.py [--all] [--json FILE] [WORD ...]

``put_back.toml`` holds, for each entry under "Fixed" in CHANGELOG.md, a small patch that brings its
fault back into today's code, or why there can be none. A patch is applied to a copy of the package
that is installed beside this Python; one of C++ to the sources, which are compiled. The tests that
it names run on that copy: first as `make test` runs them, then as `make test-slow`; where both pass
and ``--all`` is given, all of `make test`. WORD: only entries with one of these words.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import srs_ooc

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
QUICK, SLOW = "make test", "make test-slow"
SUITES = {
    QUICK: ("not slow and not campaign", "0.2"),
    SLOW: ("(slow or property) and not campaign", "1"),
}
"""The marks and the share of examples of each, as in Makefile."""
PASSED, FAILED, NONE = 0, 1, 5
"""Exit statuses of pytest."""
AS_IT_IS = Path(srs_ooc.__file__).parents[1]
"""Where the package without faults is: a test that fails on it catches nothing."""


def patched(fault: dict[str, Any], folder: Path) -> None:
    """Put the package with the fault in it in a folder: a copy, compiled where the fault is native.

    Raises
    ------
    ValueError
        If what is to be replaced does not stand in its file exactly once.
    """
    is_native = any(change["file"].startswith("native/") for change in fault["changes"])
    source, into = folder / "source", folder / "source" if is_native else folder
    shutil.copytree((ROOT if is_native else AS_IT_IS) / "srs_ooc", into / "srs_ooc")
    for change in fault["changes"]:
        file = into / "srs_ooc" / change["file"]
        text = file.read_text(encoding="utf-8")
        if text.count(change["stands"]) != 1:
            raise ValueError(f"{fault['entry']}: {change['file']} has changed: {change['stands']}")
        file.write_text(text.replace(change["stands"], change["put"]), encoding="utf-8")
    if is_native:
        for name in ("CMakeLists.txt", "pyproject.toml", "LICENSE", "README.md"):
            shutil.copy(ROOT / name, source)
        pip = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "-q"]
        one_isa = "--config-settings=cmake.define.SRS_ALL_ISAS=OFF"
        subprocess.run([*pip, one_isa, "--target", folder, source], check=True)


def first_failure(folder: Path, tests: list[str], suite: str) -> str | None:
    """Run tests of a suite on the package in a folder; return the first that fails.

    Raises
    ------
    RuntimeError
        If the tests cannot be run.
    """
    marks, share = SUITES[suite]
    environment = {**os.environ, "PYTHONPATH": f"{folder}", "CI": "true", "SRS_OOC_EXAMPLES": share}
    command = [sys.executable, "-m", "pytest", "-c", f"{ROOT}/pyproject.toml", f"--rootdir={ROOT}"]
    command += ["-p", "no:cacheprovider", "-x", "-q", "-m", marks]
    command += [f"{ROOT}/tests/{test}" for test in tests]
    with TemporaryDirectory() as empty:
        how: dict[str, Any] = {"cwd": empty, "env": environment, "capture_output": True}
        done = subprocess.run(command, text=True, check=False, **how)
    if done.returncode in (PASSED, NONE):
        return None
    failed: list[str] = [
        line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))
    ]
    if not failed:
        raise RuntimeError(f"expected that tests run, found:\n{done.stdout}{done.stderr}")
    return failed[0].partition("tests/")[2].partition(" - ")[0]


def caught(fault: dict[str, Any], *, tries_all: bool) -> tuple[str, str]:
    """Put a fault back; return what catches it, the suite and the first test, or that none does."""
    with TemporaryDirectory(prefix="put-back-") as name:
        patched(fault, Path(name))
        tries = [(suite, fault["tests"]) for suite in SUITES]
        for suite, tests in [*tries, (QUICK, [""])] if tries_all else tries:
            found = first_failure(Path(name), tests, suite)
            if found is not None and first_failure(AS_IT_IS, [found], suite) is None:
                return suite, found
    return "not caught", ""


def outcome(fault: dict[str, Any], *, tries_all: bool) -> tuple[str, str]:
    """Return what became of a fault, and the test or the reason."""
    if "why" in fault:
        return str(fault.get("is", "not possible")), fault["why"]
    return caught(fault, tries_all=tries_all)


def main() -> None:
    """Put back the faults that were asked for, and print a line for each and the counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--all", action="store_true", help="try all of `make test` at last")
    parser.add_argument("--json", type=Path, help="add what is found to this file, by entry")
    asked = parser.parse_args()
    faults = tomllib.loads((HERE / "put_back.toml").read_text(encoding="utf-8"))["fault"]
    kept = json.loads(asked.json.read_text()) if asked.json and asked.json.exists() else {}
    counts: Counter[str] = Counter()
    for fault in faults:
        entry = fault["entry"]
        if asked.words and not any(word in entry for word in asked.words):
            continue
        kept[entry] = what, how = outcome(fault, tries_all=asked.all)
        counts[what] += 1
        print(f"| {entry} | {what} | {how} |", flush=True)
        if asked.json:
            asked.json.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    print(*(f"{what}: {count}" for what, count in counts.most_common()), sep="\n")


if __name__ == "__main__":
    main()
