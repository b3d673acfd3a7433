"""One store, one command, one seed: one answer, on every core and every processor.

What another processor would do is had on this one: OpenBLAS takes the kernels of the type that it
is told, NumPy leaves its loops for newer instructions out, and the C library its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command import HANGS, environment

SCRIPT = Path(__file__).parent / "helpers" / "every_machine.py"
_OLD_C_LIBRARY = "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F,-AVX2_Usable,-FMA_Usable"


_SUPPORTED = " ".join(np.show_config(mode="dicts")["SIMD Extensions"]["found"])
"""The processors' features that NumPy has loops for and has found here."""
OLD = "one core of an old processor"
OTHERS = {
    OLD: {
        "OPENBLAS_CORETYPE": "Prescott",
        "NPY_DISABLE_CPU_FEATURES": _SUPPORTED,
        "GLIBC_TUNABLES": _OLD_C_LIBRARY,
        "ONLY_CORE": "0",
    },
    "Nehalem's BLAS": {"OPENBLAS_CORETYPE": "Nehalem"},
    "Haswell's BLAS": {"OPENBLAS_CORETYPE": "Haswell"},
}
"""All that can be old at once: where that differs, one after another tells which it is."""


def digests(folder, *words, **changed):
    """Run the script as on another machine; return what it prints."""
    folder.mkdir()
    core = changed.pop("ONLY_CORE", None)
    start = f"import os; os.sched_setaffinity(0, {{{core}}}); " if core else ""
    start += f"import runpy; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    env = environment() | {"PYTHONWARNINGS": "default"} | changed
    how = {"env": env, "capture_output": True, "text": True, "timeout": HANGS}
    done = subprocess.run([sys.executable, "-c", start, str(folder), *words], **how, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def differing(found, expected):
    return {name for name in expected if found[name] != expected[name]}


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    return digests(tmp_path_factory.mktemp("here") / "all")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen here")
def test_a_few_runs_end_the_same_on_one_core_of_an_old_processor(tmp_path):
    expected = digests(tmp_path / "here", "few")
    assert differing(digests(tmp_path / "there", "few", **OTHERS[OLD]), expected) == set()


@pytest.mark.few(0, 1)
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen here")
@pytest.mark.parametrize("name", OTHERS)
def test_every_method_ends_the_same_as_on(name, here, tmp_path):
    assert differing(digests(tmp_path / "there", **OTHERS[name]), here) == set()
