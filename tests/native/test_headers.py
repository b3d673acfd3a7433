"""Each native header includes all that it uses, so that it can be read, and included, first."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import nanobind
import pytest

SOURCES = Path(__file__).parents[2] / "srs_ooc" / "native"
PLACES = [SOURCES, nanobind.include_dir(), sysconfig.get_path("include")]


def parsed(*headers):
    """Hand headers to the compiler, each as a program of its own."""
    names = [os.environ.get("CXX"), "c++", "g++", "clang++"]
    compiler = next((shutil.which(name) for name in names if name and shutil.which(name)), None)
    if compiler is None:
        pytest.skip("no C++ compiler here")
    command = [compiler, "-std=gnu++17", "-fsyntax-only", *(f"-I{place}" for place in PLACES)]
    return subprocess.run(
        [*command, "-x", "c++", *headers], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_every_header_parses_alone():
    headers = sorted(SOURCES.rglob("*.hpp"))
    assert headers
    done = parsed(*headers)
    assert done.returncode == 0, done.stderr


def test_a_header_that_needs_another_is_told(tmp_path):
    (tmp_path / "needy.hpp").write_text("#pragma once\nsrs::GrowJob job();\n")
    assert parsed(tmp_path / "needy.hpp").returncode
