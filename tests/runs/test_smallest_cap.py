"""The smallest cap that is named works: the run ends at it, and what reads it works at it, too.

The whole grid takes minutes: ``pytest tests/runs/test_smallest_cap.py -m slow``.
"""

import numpy as np
import pytest
from command import error_of, peak_kb
from stores import make_store

SHAPES = {"narrow": (300, 40), "wide": (24, 60_000), "tall": (30_000, 12)}
WAYS = {
    "decoys": (),
    "three-decoys": ("--decoys", 3),
    "permutations": ("--permutations", 9),
    "trees": ("--save-trees",),
    "permutations-and-trees": ("--permutations", 9, "--save-trees"),
    "decoys-and-trees": ("--judge", "decoy", "--save-trees"),
    "by-sensitivity": ("--closing", "sensitivity"),
    "files": ("--rows", "rows.txt", "--exclude", "excluded.txt"),
}
QUICK = {("narrow", "decoys"), ("wide", "files")}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Folders by shape with a store and files of names, made when first asked for."""
    made = {}

    def get(name):
        if name not in made:
            folder = made[name] = tmp_path_factory.mktemp(name)
            n_rows, n_features = SHAPES[name]
            values = np.random.default_rng(0).standard_normal((n_features, n_rows))
            make_store(folder / "t.zarr", values, (values[0] > 0).astype(int))
            names = "".join(f"f{i}\n" for i in range(1, n_features, 2))
            (folder / "excluded.txt").write_text(names)
            ids = "".join(f"{i}\n" for i in range(1, n_rows + 1) if i % 5)
            (folder / "rows.txt").write_text(ids)
        return made[name]

    return get


def cap_named(*arguments, cwd):
    refused = error_of(*arguments, "--memory-mb", 9, cwd=cwd)
    return int(refused.rsplit("--memory-mb ", 1)[1].rstrip("."))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "way"),
    [
        pytest.param(shape, way, marks=[] if (shape, way) in QUICK else [pytest.mark.campaign])
        for shape in SHAPES
        for way in WAYS
    ],
)
def test_a_run_and_all_that_reads_it_work_at_the_smallest_cap_named(stores, tmp_path, shape, way):
    folder, run = stores(shape), tmp_path / "a.run"
    options = ("--out", run, "--iterations", 12, *WAYS[way])
    cap = cap_named("run", "t.zarr", *options, cwd=folder)
    commands = [
        ("run", "t.zarr", *options),
        ("features", run, "--csv"),
        ("status", run),
        ("inspect", "t.zarr"),
        ("verify", run),
        ("export", "t.zarr", run, tmp_path / "out.csv", "--top", 3),
    ]
    for command in commands:
        peak_mb = peak_kb(*command, "--memory-mb", cap, cwd=folder) * 1024 / 1e6
        assert peak_mb < cap, command
    if "--save-trees" in WAYS[way]:
        predict = ("predict", run, "t.zarr", tmp_path / "p.csv")
        cap = cap_named(*predict, cwd=folder)
        assert peak_kb(*predict, "--memory-mb", cap, cwd=folder) * 1024 / 1e6 < cap
