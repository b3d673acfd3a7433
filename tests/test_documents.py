"""Every command and every block of Python in README and docs runs, in order, page by page.

A block of text right after one is what it prints, to the letter.
"""

import contextlib
import gzip
import io
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from command import srs_ooc

pytestmark = pytest.mark.documents

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("SRS_OOC_DATA", ROOT.parent / "shared" / "data"))
PAGES = {
    str(path.relative_to(ROOT)): path
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
}
BLOCK = re.compile(
    r"^```(sh|console|python)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
ELSEWHERE = {
    "docs/python.md": "tests/test_python_page.py",
    "docs/extending.md": "tests/test_testing_parts.py",
    "CONTRIBUTING.md": "the commands of this very test suite",
}
"""Pages whose blocks other tests run, or that this one cannot."""
NOT_RUN = {
    "make demo": "the test below does it in a copy",
    "python3 -m venv venv": "sets up the environment that the tests run in",
    "srs-ooc compact data.run --max-features 20": "minutes; docs/compact.md has a small one",
}
"""Blocks that are not run, by their beginning, and why."""
REAL = ("filtered_feature_bc_matrix.h5", "example.bed", "level5.gct", "feature-table.qza")
"""Files that other programs wrote: a block that names one is run where it is."""
SMALLER = {"--halves 20": "--halves 2"}
"""What is run with less than a page says."""
LONG = {"docs/compact.md"}
"""Pages that are run by the campaign."""


def blocks_of(name):
    """Return the blocks of a page that are run: language, text, and what it prints, if shown."""
    return [
        (language, text, shown)
        for language, text, shown in BLOCK.findall(PAGES[name].read_text(encoding="utf-8"))
        if not any(text.startswith(start) for start in NOT_RUN)
    ]


RUN = sorted(name for name in PAGES if name not in ELSEWHERE and blocks_of(name))


def table(path, target="diagnosis", rows=120, features=150, seed=5, **columns):
    """Write a table whose first three features are informative; ``columns`` come first."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((rows, features)).round(3)
    ill = values[:, :3].sum(axis=1) + rng.standard_normal(rows) > 0
    names = [*columns, *(f"f{i}" for i in range(features)), target]
    lines = [",".join(names)]
    for row in range(rows):
        extra = [str(column[row]) for column in columns.values()]
        label = "ill" if ill[row] else "well"
        lines.append(",".join([*extra, *map(str, values[row]), label]))
    path.write_text("\n".join(lines) + "\n")


def turned(folder):
    """Write a table with features as rows, and the file of its samples."""
    rng = np.random.default_rng(5)
    samples = [f"S{i}" for i in range(40)]
    lines = ["\t".join(["site", *samples])]
    lines += ["\t".join([f"cg{i}", *map(str, rng.random(40).round(3))]) for i in range(60)]
    (folder / "betas.tsv").write_text("\n".join(lines) + "\n")
    people = [f"{name},{'case' if i % 2 else 'control'}" for i, name in enumerate(samples)]
    (folder / "pheno.csv").write_text("\n".join(["Basename,Group", *people]) + "\n")
    (folder / "betas.tsv.gz").write_bytes(gzip.compress((folder / "betas.tsv").read_bytes()))


def once(make):
    """What makes the files that several pages begin with: the first time, for all of them."""

    def copied(folder):
        kept = folder.parent / make.__name__
        if not kept.exists():
            kept.mkdir()
            make(kept)
        shutil.copytree(kept, folder, dirs_exist_ok=True)

    return copied


@once
def finished(folder):
    """Make the table, the store and the run that a page begins with."""
    table(folder / "data.csv")
    shell(folder, "srs-ooc ingest data.csv data.zarr\nsrs-ooc run data.zarr --iterations 300")


@once
def five_minutes(folder):
    """Make the table of the first page, and its store."""
    made = "srs-ooc synth madelon data.csv --rows 500 --features 3000 --relevant 20 --seed 1"
    shell(folder, f"{made}\nsrs-ooc ingest data.csv data.zarr")


def searched(folder):
    """Make the same, and its run."""
    five_minutes(folder)
    shell(folder, "srs-ooc run data.zarr")


def cluster(folder):
    """Make the same, where Dask is."""
    pytest.importorskip("distributed")
    five_minutes(folder)


def objects(folder):
    """Write the files, and return the names, that the page on ingest takes as there."""
    turned(folder)
    table(folder / "data.csv", rows=40, features=30)
    table(folder / "plate2.csv", rows=12, features=30, seed=6)
    chip = np.random.default_rng(7).integers(0, 3, (40, 4)).astype(str).tolist()
    lines = [",".join(line) for line in [["rs1", "rs2", "rs3", "rs4"], *chip]]
    (folder / "chip2.csv").write_text("\n".join(lines) + "\n")
    path = folder / "table.json"
    path.write_text('{"age": [30, null], "sex": ["m", "f"]}')
    import pandas as pd

    values = np.random.default_rng(5).standard_normal((40, 30))
    frame = pd.DataFrame({"id": range(40), "a": values[:, 0], "b": values[:, 1], "y": [0, 1] * 20})
    return {"X": values, "y": ["a", "b"] * 20, "frame": frame, "path": path}


def parted(folder):
    """Write two tables of one kind, the first as a store too."""
    for seed, name in enumerate(("data.csv", "new.csv"), 5):
        table(folder / name, seed=seed)
    shell(folder, "srs-ooc ingest data.csv data.zarr")


def study(folder):
    """Write a table with a plate for each row, and a patient for each two."""
    rows = np.arange(120)
    table(folder / "study.csv", "ill", plate=[f"p{i}" for i in rows % 4], patient=rows // 2)


def expressed(folder):
    """Write a table of genes, and the names of those that may regulate."""
    values = np.random.default_rng(5).standard_normal((40, 12)).round(3)
    names = ["TP53", "MYC", *(f"G{i}" for i in range(10))]
    lines = [",".join(names), *(",".join(map(str, row)) for row in values.tolist())]
    (folder / "expression.csv").write_text("\n".join(lines) + "\n")
    (folder / "factors.txt").write_text("TP53\nMYC\nG1\n")


def tasks(folder):
    """Write what every task of the page of how-tos begins with."""
    turned(folder)
    study(folder)
    known = people()
    table(folder / "table.csv", "ill", **known)
    bmi = np.random.default_rng(9).normal(25, 4, 120).round(1)
    lines = [f"{i + 1},{bmi[i]},{['no', 'yes'][i % 3 > 1]},{known['age'][i]},{known['sex'][i]}"
             for i in range(118)]  # fmt: skip
    (folder / "people.csv").write_text("\n".join(["row,bmi,smoker,age,sex", *lines]) + "\n")
    finished(folder)


def people():
    """Return what is known of the rows of a table besides features."""
    rng = np.random.default_rng(6)
    age, sex = rng.normal(50, 10, 120).round(1), ["mf"[one] for one in rng.integers(0, 2, 120)]
    return {"age": age, "sex": sex}


def cohort(folder):
    """Write what a study has: covariates, times and events, visits of patients; and arrays."""
    import pandas as pd

    rows, known = np.arange(120), people()
    batch, ids = [f"b{i % 3}" for i in rows], [f"s{i}" for i in rows]
    table(folder / "study.csv", "ill", id=ids, **known, batch=batch)
    table(folder / "visits.csv", "ill", patient=rows // 2)
    months = np.random.default_rng(7).exponential(20, 120).round(1)
    outcome = {"months": months, "died": rows % 2, "stage": [f"s{i % 2}" for i in rows]}
    table(folder / "cohort.csv", "other", id=ids, age=known["age"], **outcome)
    values = np.random.default_rng(5).standard_normal((120, 40))
    y = (values[:, 0] + np.random.default_rng(8).standard_normal(120) > 0).astype(int)
    frame = pd.DataFrame(values, columns=[f"g{i}" for i in range(40)]).assign(**known)
    arrays = {"age": known["age"], "sex": np.array(known["sex"])}
    return arrays | {"x": values, "y": y, "frame": frame, "patient": rows // 2}


def single_cells(folder):
    """Write cells as AnnData does, a tenth of their counts not zero, and HDF5 with a row a gene."""
    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(5)
    donors, genes, text = np.arange(400) // 10, 60, h5py.string_dtype()
    counts = rng.poisson(0.1, (400, genes)) * 1.0
    states, ages = np.array(["ill", "well"])[donors % 2], 40.0 + donors
    known = {"donor": [f"d{i}" for i in donors], "state": states.tolist()}
    with h5py.File(folder / "cells.h5ad", "w") as file:
        group = file.create_group("X")
        group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", counts.shape
        group["data"], group["indices"] = counts[counts != 0], np.nonzero(counts)[1]
        group["indptr"] = np.concatenate([[0], np.cumsum((counts != 0).sum(axis=1))])
        for name, ids in (("obs", "cell"), ("var", "gene")):
            frame = file.create_group(name)
            frame.attrs["_index"] = ids
            texts = [f"{ids}{i}" for i in range(counts.shape[name == "var"])]
            frame.create_dataset(ids, data=texts, dtype=text)
        file["obs/age"] = ages
        for name, cells in known.items():
            file["obs"].create_dataset(name, data=cells, dtype=text)
    with h5py.File(folder / "assay.h5", "w") as file:
        file["study/counts"] = counts.T
        file["study"].create_dataset("state", data=known["state"], dtype=text)
        file["study"].create_dataset("gene", data=[f"g{i}" for i in range(genes)], dtype=text)
    real(folder, filtered_feature_bc_matrix__h5="files/10x-v3.h5")
    if (path := folder / "filtered_feature_bc_matrix.h5").exists():
        with h5py.File(path) as file:
            cells = file["matrix/barcodes"].asstr()[:]
        lines = [f"{one},d{i % 20},{['ill', 'well'][i % 2]}" for i, one in enumerate(cells)]
        (folder / "cells.csv").write_text("\n".join(["barcode,donor,state", *lines]))


def real(folder, **names):
    """Copy files that other programs wrote, where they are, by the names that a page has."""
    for name, path in names.items():
        if (DATA / path).exists():
            shutil.copy2(DATA / path, folder / name.replace("__", "."))


def genotypes(folder):
    """Write a .bed, and components as plink2 --pca does."""
    rng = np.random.default_rng(1)
    copies = rng.binomial(2, 0.4, (200, 60))  # of the first allele: variants x samples
    ill = copies[:2].sum(axis=0) + rng.standard_normal(60) > 1.6
    bits = np.array([3, 2, 0], np.uint8)[copies].reshape(200, 15, 4) << np.arange(0, 8, 2, np.uint8)
    (folder / "study.bed").write_bytes(b"\x6c\x1b\x01" + bits.sum(2, dtype=np.uint8).tobytes())
    files = {
        "bim": (f"1 rs{i} 0 {1000 * i} A G" for i in range(200)),
        "fam": (f"F{i} P{i} 0 0 {1 + i % 2} {1 + one}" for i, one in enumerate(ill)),
        "eigenvec": (
            f"F{i}\tP{i}\t{a:.4f}\t{b:.4f}" for i, (a, b) in enumerate(rng.normal(size=(60, 2)))
        ),
    }
    files["eigenvec"] = ["#FID\tIID\tPC1\tPC2", *files["eigenvec"]]
    for ending, lines in files.items():
        (folder / f"study.{ending}").write_text("\n".join([*lines, ""]))
    names = ("example.bed", "example.bim", "example.fam", "phenotype_bin.txt", "covariates.txt")
    real(folder, **{name.replace(".", "__"): f"regenie-example/{name}" for name in names})


def arrays(folder):
    """Write a panel of four plates, and a series as GEO has it."""
    rows = np.arange(120)
    known = {"well": [f"w{i}" for i in rows], "plate": [f"p{i}" for i in rows % 4]}
    table(
        folder / "panel.csv", "response", features=40, **known, operator=[f"o{i}" for i in rows % 3]
    )
    values, ids = np.random.default_rng(6).standard_normal((60, 40)).round(3), np.arange(40)
    values[0] += ids % 2 * 2
    lines = [
        ["!Series_title", '"Blood of patients"'],
        ["!Sample_geo_accession", *(f'"GSM{i}"' for i in ids)],
    ]
    states, ages = [["well", "ill"][i % 2] for i in ids], (40 + ids * 7 % 30).tolist()
    for word, cells in (("disease state", states), ("age", ages)):
        lines.append(["!Sample_characteristics_ch1", *(f'"{word}: {one}"' for one in cells)])
    lines += [["!series_matrix_table_begin"], ['"ID_REF"', *(f'"GSM{i}"' for i in ids)]]
    lines += [[f'"{i}_at"', *map(str, row)] for i, row in enumerate(values)]
    text = "\n".join("\t".join(line) for line in [*lines, ["!series_matrix_table_end"], []])
    (folder / "GSE1_series_matrix.txt.gz").write_bytes(gzip.compress(text.encode()))
    real(folder, level5__gct="files/n5x10-1.2.gct")


def microbes(folder):
    """Write BIOM 1.0 as QIIME 1 does, the same with a row a sample, and metadata of QIIME 2."""
    rng = np.random.default_rng(6)
    counts, ids = rng.poisson(rng.gamma(0.3, 20, (60, 1)), (60, 40)), [f"S{i}" for i in range(40)]
    counts[0, ::2] += rng.poisson(9, 20)
    said = {
        "rows": [{"id": f"taxon{i}", "metadata": {"taxonomy": ["k__Bacteria"]}} for i in range(60)],
        "data": [[*at, int(counts[*at])] for at in np.argwhere(counts).tolist()],
        "columns": [{"id": one, "metadata": None} for one in ids],
        "matrix_type": "sparse", "shape": [60, 40], "format_url": "http://biom-format.org",
    }  # fmt: skip
    (folder / "table.biom").write_text(json.dumps(said))
    header = ["sample-id\tdiagnosis\tage\tdepth", "#q2:types\tcategorical\tnumeric\tnumeric"]
    known = zip(ids, ["ill", "well"] * 20, counts.sum(axis=0), strict=True)
    lines = [
        f"{one}\t{state}\t{30 + i * 7 % 40}\t{depth}" for i, (one, state, depth) in enumerate(known)
    ]
    (folder / "metadata.tsv").write_text("\n".join([*header, *lines, ""]))
    rows = [[one, *map(str, counts[:, i])] for i, one in enumerate(ids)]
    names = ["", *(f"taxon{i}" for i in range(60))]
    (folder / "seqtab.csv").write_text("\n".join(",".join(row) for row in [names, *rows]))
    biom = DATA / "files" / "otu-2.1.biom"
    if biom.exists() and shutil.which("unzip"):
        with zipfile.ZipFile(folder / "feature-table.qza", "w") as file:
            file.write(biom, "0e0b5ed7-3b5a-4f52-9f32-0a3e0a5d7f10/data/feature-table.biom")


BEFORE = {
    "docs/cells.md": single_cells,
    "docs/genotypes.md": genotypes,
    "docs/plates.md": arrays,
    "docs/microbiome.md": microbes,
    "docs/howto.md": tasks,
    "docs/methods/networks.md": expressed,
    "docs/methods/rfest.md": lambda folder: table(folder / "data.csv"),
    "docs/ingest.md": objects,
    "docs/trees.md": parted,
    "docs/report.md": finished,
    "docs/choosing.md": finished,
    "docs/cluster.md": cluster,
    "docs/evidence.md": five_minutes,
    "docs/pairs.md": searched,
    "docs/compact.md": finished,
    "docs/study.md": cohort,
}
"""What a page's reader has at the beginning."""
SHORT = {
    "README.md": 1220,
    "docs/cells.md": 500,
    "docs/databases.md": 400,
    "docs/genotypes.md": 500,
    "docs/microbiome.md": 500,
    "docs/plates.md": 500,
    "docs/r.md": 400,
    "docs/words.md": 300,
}
"""The most words of a page."""


PLAIN = re.compile(r"(srs-ooc [^|<>$;&\\\n#']*(#[^\n]*)?\n?)+")


def shell(folder, text):
    """Return what commands print, run as a reader types them; the first that fails ends them.

    Where they are nothing but our own, they are run without a shell, which is faster.
    """
    for said, smaller in SMALLER.items():
        text = text.replace(said, smaller)
    if PLAIN.fullmatch(text):
        lines = (shlex.split(line, comments=True) for line in text.splitlines())
        return "".join(srs_ooc(*words, cwd=folder).stdout for _, *words in lines)
    here = folder / "bin"
    here.mkdir(exist_ok=True)
    program = here / "srs-ooc"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m srs_ooc "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    environment = {**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def session(name, folder, known):
    """Return what the blocks of a page print, run in order; compare with what the page shows."""
    everything = []
    for number, (language, text, shown) in enumerate(blocks_of(name)):
        if any(one in text and not Path(folder, one).exists() for one in REAL):
            continue
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(text, f"{name}, block {number}", "exec"), known)
            printed = out.getvalue()
        else:
            printed = shell(folder, re.sub(r"^\$ ", "", text, flags=re.MULTILINE))
        assert not shown or printed == shown
        everything.append(printed)
    return "".join(everything)


def glimpses(name):
    """Return indented lines after commands: some of what a page prints, but lines with times."""
    text = PAGES[name].read_text(encoding="utf-8")
    shown = re.findall(r"(?:^```\n\n|^(?=    \$ ))((?:    .*\n|\n(?=    ))+)", text, re.MULTILINE)
    lines = [line.removeprefix("    ") for line in "".join(shown).splitlines()]
    return [line for line in lines if not re.match(r"\$ |\.\.\.$|.* of work", line)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.campaign] if n in LONG else []) for n in RUN]
)
@pytest.mark.filterwarnings("ignore:No features were selected:UserWarning")
def test_the_blocks_of_a_page_run(tmp_path, monkeypatch, name):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    known = (BEFORE[name](tmp_path) if name in BEFORE else None) or {}
    printed = session(name, tmp_path, known)
    assert [line for line in glimpses(name) if line not in printed] == []
    check = AFTER.get(name)
    if check is not None:
        check(known, tmp_path, printed)


def digits_are_told(known, folder, printed):
    assert "d = 0.46 standard deviations is found less than half the time" in printed
    first, drawn, pixels, whole = known["scores"].values()
    assert drawn + 0.05 < first < whole
    assert abs(first - pixels) < 0.02
    assert "px" in (folder / "selected.csv").read_text()[:2000]


def the_leak_shows(known, *_):
    assert known["wrong"] > known["right"] + 0.2


def words_are_printed(_, folder, printed):
    makes = "srs-ooc ingest data.csv w.zarr; srs-ooc run w.zarr --iterations 100 --halves 2"
    shell(folder, "srs-ooc report data.run -o words.md")
    told = [
        shell(folder, f"{makes}; srs-ooc features w.run --csv"),
        (folder / "words.md").read_text(),
    ]
    assert [word for word in terms() if word not in " ".join(told).replace("_", "-")] == []


AFTER = {
    "docs/tutorial.md": digits_are_told,
    "docs/howto.md": the_leak_shows,
    "docs/report.md": words_are_printed,
}
"""What a page says of its results, checked."""


def terms():
    """Return the terms that the page of words explains."""
    return re.findall(
        r"^\| (?!here)(\w[\w -]*) \|", PAGES["docs/words.md"].read_text(), re.MULTILINE
    )


def made_by_readme():
    """Return the first commands below the second heading of README."""
    _, _, second, *_ = re.split("^##? ", PAGES["README.md"].read_text(), flags=re.MULTILINE)
    _, block, _ = BLOCK.findall(second)[0]
    return [line.partition("#")[0].strip() for line in block.splitlines()]


def test_readme_names_one_command_for_the_main_job_and_one_for_the_tests():
    assert made_by_readme() == ["make demo", "make test"]
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"demo", "test"} <= {*targets}


@pytest.mark.campaign
def test_the_two_commands_of_readme_install_what_they_need_and_run(tmp_path):
    """Of the tests a few: all of them are what this one is among."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / name)
    named = ("PYTHONPATH", "MAKEFLAGS", "MAKELEVEL")  # of the make that runs this
    bare = {name: value for name, value in os.environ.items() if name not in named}
    how = {"cwd": tmp_path, "env": bare, "capture_output": True, "text": True}
    demo, test = (
        subprocess.run([*command.split(), "TESTS=../tests/base"], check=False, **how)
        for command in made_by_readme()
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert test.returncode == 0, test.stdout + test.stderr
    assert " passed" in test.stdout


def test_pages_for_a_first_look_are_short():
    lengths = {name: len(PAGES[name].read_text(encoding="utf-8").split()) for name in SHORT}
    assert {name: n for name, n in lengths.items() if n > SHORT[name]} == {}
    assert len(terms()) == 10


def test_pages_of_the_guide_begin_with_what_they_are_about_and_what_it_prints():
    guide = (ROOT / "mkdocs.yml").read_text().partition("User guide:")[2].partition("\n  - ")[0]
    names = {f"docs/{page}" for page in re.findall(r": (\w+\.md)$", guide, re.MULTILINE)}
    text = r"(?:(?!```|    )[^#|\n].*\n){0,2}\n?(?:## .*\n\n)?"
    block = r"(?:    \$ |```(?:sh|python|r)\n)"
    begins = re.compile(rf"# .*\n\n{text}{block}")
    others = {"docs/index.md", "docs/words.md"}
    assert names > others
    assert {one for one in names - others if not begins.match(PAGES[one].read_text())} == set()


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_the_words_are_linked_from_where_a_reader_begins(name):
    assert re.search(r"\]\((docs/)?words\.md\)", PAGES[name].read_text(encoding="utf-8"))


def test_every_exception_is_still_in_a_page():
    text = "\n".join(path.read_text(encoding="utf-8") for path in PAGES.values())
    assert [start for start in NOT_RUN if f"\n{start}" not in text] == []
    assert [name for name in [*ELSEWHERE, *BEFORE, *AFTER, *LONG] if name not in PAGES] == []


@pytest.mark.parametrize("name", PAGES)
def test_tests_and_benchmarks_that_a_page_names_are_there(name):
    named = set(re.findall(r"\b(?:tests|benchmarks)/[\w/]+\.py", PAGES[name].read_text()))
    assert {path for path in named if not (ROOT / path).exists()} == set()
