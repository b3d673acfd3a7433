"""The CSV reader under address and undefined-behaviour sanitizers; its numbers against float().

``SRS_OOC_FUZZ_SECONDS=600 pytest tests/ingestion/test_fuzz_parse.py`` runs for longer, and
``SRS_OOC_FUZZ_SEED`` on other texts.
"""

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SOURCES = TESTS.parent / "srs_ooc" / "native"
SECONDS = float(os.environ.get("SRS_OOC_FUZZ_SECONDS", "3"))
SEED = os.environ.get("SRS_OOC_FUZZ_SEED", "1")
FLAGS = ["-std=c++17", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def compiled(compiler: str, source: Path, program: Path) -> subprocess.CompletedProcess:
    command = [compiler, *FLAGS, f"-I{SOURCES}", str(source), "-o", str(program)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def program(tmp_path):
    names = [os.environ.get("CXX"), "c++", "g++", "clang++"]
    compiler = next((shutil.which(name) for name in names if name and shutil.which(name)), None)
    if compiler is None:
        pytest.skip("no C++ compiler here")
    trivial = tmp_path / "trivial.cpp"
    trivial.write_text("int main() { return 0; }")
    if compiled(compiler, trivial, tmp_path / "trivial").returncode:
        pytest.skip(f"{compiler} has no address and undefined-behaviour sanitizers")
    built = compiled(compiler, TESTS / "fuzz" / "fuzz_parse.cpp", tmp_path / "fuzz")
    assert built.returncode == 0, built.stderr
    return tmp_path / "fuzz"


@pytest.mark.slow
def test_made_up_texts_under_sanitizers(program):
    done = subprocess.run(
        [program, SEED, str(SECONDS)],
        capture_output=True,
        text=True,
        timeout=3600 + 3 * SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lines = done.stdout.splitlines()
    assert len(lines) > 20
    for line in lines:
        text, bits = line.split()
        value = struct.unpack(">d", bytes.fromhex(bits))[0]
        assert struct.pack("d", value) == struct.pack("d", float(text)), text
