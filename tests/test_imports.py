"""What a run does not need is not imported: memory under the cap belongs to the block."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ["zarr", "sklearn", "scipy", "pandas", "rich", "matplotlib", "dask", "distributed"]

PROBE = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps(sorted({module.split(".")[0] for module in sys.modules})))
"""


def imported_by(folder: Path, *modules: str) -> list[str]:
    command = [sys.executable, "-c", PROBE, *modules]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True)
    packages: list[str] = json.loads(done.stdout)
    return packages


@pytest.mark.parametrize("modules", [["srs_ooc"], ["srs_ooc.cli"], ["srs_ooc.synthetic.problems"]])
def test_heavy_libraries_load_only_where_used(tmp_path: Path, modules: list[str]) -> None:
    packages = imported_by(tmp_path, *modules)
    assert "srs_ooc" in packages
    assert [name for name in HEAVY if name in packages] == []


def test_a_run_loads_no_codec_of_values(tmp_path: Path) -> None:
    packages = imported_by(tmp_path, "srs_ooc.cli.run")
    assert [name for name in [*HEAVY, "numcodecs", "google_crc32c"] if name in packages] == []


def test_a_plan_loads_nothing_that_reads_tables_or_finished_runs(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,y\n1,5,u\n2,6,v\n2,7,u\n1,6,v\n")
    code = (
        "import sys\n"
        "from srs_ooc.cli import main\n"
        "try:\n"
        "    main(['plan', 't.zarr'])\n"
        "except SystemExit as end:\n"
        "    assert not end.code\n"
        "print(*(name for name in sys.modules if name.startswith('srs_ooc.')))"
    )
    ingest = [sys.executable, "-m", "srs_ooc", "ingest", "t.csv", "t.zarr"]
    subprocess.run(ingest, cwd=tmp_path, capture_output=True, check=True)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, text=True)
    loaded = {*done.stdout.splitlines()[-1].split()}
    unasked = ["api", "ensemble", "estimators", "ingestion.ingest", "results.result"]
    assert "srs_ooc.planning" in loaded
    assert not loaded & {f"srs_ooc.{name}" for name in unasked}


def test_zarr_loads_where_a_store_is_verified_alone(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,y\n1,5,u\n2,6,v\n2,7,u\n")
    code = (
        "import sys, srs_ooc, srs_ooc.ingestion.shards\n"
        "srs_ooc.ingest('t.csv', 't.zarr')\n"
        "loaded = ['zarr' in sys.modules]\n"
        "srs_ooc.open_store('t.zarr').verify()\n"
        "print(loaded, 'zarr' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, text=True)
    assert done.stdout == "[False] True\n"


def test_the_probe_sees_an_import(tmp_path: Path) -> None:
    assert "rich" in imported_by(tmp_path, "rich.text")


@pytest.mark.parametrize("words", [[], ["--version"], ["--help"]])
def test_no_command_is_loaded_where_none_is_named(tmp_path: Path, words: list[str]) -> None:
    code = (
        "import sys\n"
        "from srs_ooc.cli import main\n"
        "try:\n"
        f"    main({words})\n"
        "except SystemExit as end:\n"
        "    assert not end.code\n"
        "print([name for name in sys.modules if name.startswith('srs_ooc.cli.')])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", ["import srs_ooc", "import srs_ooc.cli"])
def test_a_start_loads_no_library_but_click(command: str) -> None:
    """What takes time is imports: this holds the start of `--version` and of `import srs_ooc`."""
    show = "import sys; before = set(sys.modules); "
    names = "{name.partition('.')[0] for name in set(sys.modules) - before}"
    shown = f"print(*sorted({names} - sys.stdlib_module_names))"
    done = subprocess.run(
        [sys.executable, "-c", f"{show}{command}; {shown}"],
        capture_output=True,
        text=True,
        check=True,
    )
    expected = {"srs_ooc"} if command == "import srs_ooc" else {"click", "srs_ooc"}
    assert set(done.stdout.split()) == expected
