"""The source distribution holds what it is built from, and nothing else."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import srs_ooc

ROOT = Path(__file__).parents[1]


def build(kind, source, out):
    pytest.importorskip("build")
    pytest.importorskip("scikit_build_core")
    command = [sys.executable, "-m", "build", f"--{kind}", "--outdir", str(out), str(source)]
    if kind == "sdist":
        command += ["--no-isolation", "--skip-dependency-check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = out.iterdir()
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.mark.slow
def test_the_source_distribution_has_the_version_and_the_sources(sdist):
    assert sdist.name == f"srs_ooc-{srs_ooc.__version__}.tar.gz"
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    sources = {
        str(path.relative_to(ROOT))
        for pattern in ("*.py", "*.pyi", "*.cpp", "*.hpp")
        for path in (ROOT / "srs_ooc").rglob(pattern)
    }
    assert sources | {"CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml"} <= names
    built = ("build/", ".venv/", "demo/")
    assert [name for name in names if name.startswith(built) or name.endswith(".so")] == []


@pytest.mark.slow
def test_a_wheel_is_built_from_the_source_distribution(sdist, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    wheel = build("wheel", source, tmp_path / "wheel")
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.startswith("srs_ooc/native/_native") for name in names)
    assert [name for name in names if name.endswith((".cpp", ".hpp"))] == []
