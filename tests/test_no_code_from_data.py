"""Files are data, never code: what SECURITY.md promises."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command import error_of
from offenders import assert_none

PACKAGE = Path(__file__).parents[1] / "srs_ooc"
MODULES = sorted(PACKAGE.rglob("*.py"))
LOADERS = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
HARMLESS = {"effective_n_jobs"}
"""Of joblib: how many workers a user asked for."""
BUILTINS = {"eval", "exec", "compile", "__import__"}


class Touch:
    """An object that makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def faults(source):
    """What in a source could turn data into code, by line."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = {alias.name.split(".")[0] for alias in node.names}
            found += [(node.lineno, name) for name in names & LOADERS]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in LOADERS:
            if not {alias.name for alias in node.names} <= HARMLESS:
                found.append((node.lineno, node.module))
        elif isinstance(node, ast.Call):
            found += [(node.lineno, name) for name in [fault_of(node)] if name]
    return found


def fault_of(call):
    """The name of a call that runs or unpickles what it is given, if it is one."""
    if isinstance(call.func, ast.Name):
        return call.func.id if call.func.id in BUILTINS else None
    allowed = [word.value for word in call.keywords if word.arg == "allow_pickle"]
    if any(not isinstance(a, ast.Constant) or a.value is not False for a in allowed):
        return "allow_pickle"
    return None


def test_no_module_can_turn_data_into_code():
    assert MODULES
    assert_none({str(path.relative_to(PACKAGE)): faults(path.read_text()) for path in MODULES})


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from joblib import load",
        "eval(text)",
        "np.load(path, allow_pickle=True)",
        "def f():\n    import marshal",
    ],
)
def test_a_fault_is_seen(source):
    assert faults(source)


@pytest.mark.parametrize("role", ["table", "target", "archive"])
def test_arrays_of_objects_are_refused_and_not_unpickled(tmp_path, role):
    touched = tmp_path / "touched"
    objects = np.array([Touch(touched) for _ in range(6)], dtype=object)
    table, labels = tmp_path / "t.npy", tmp_path / "y.npy"
    np.save(table, np.arange(12.0).reshape(6, 2))
    np.save(labels, np.arange(6) % 2)
    if role == "table":
        np.save(table, objects.reshape(3, 2), allow_pickle=True)
        np.save(labels, np.arange(3) % 2)
    elif role == "target":
        np.save(labels, objects, allow_pickle=True)
    else:
        table = tmp_path / "t.npz"
        np.savez(table, X=objects.reshape(3, 2))
        np.save(labels, np.arange(3) % 2)
    error_of("ingest", table, tmp_path / "t.zarr", "--target-file", labels)
    assert not touched.exists()


def test_the_object_would_have_made_its_file(tmp_path):
    np.save(tmp_path / "t.npy", np.array([Touch(tmp_path / "touched")]), allow_pickle=True)
    code = f"import numpy as np; np.load({str(tmp_path / 't.npy')!r}, allow_pickle=True)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "touched").exists()
