"""Files as their tools write them: each kind ingested, and compared cell by cell with its reader.

Claims: rows, columns, cells, missing ones, names, ids and target of every kind that is read are
those that the tool's own reader gives; every other kind is refused with a line that makes a file
that is read so.

    python benchmarks/files.py [--tools VENV] [--package before=VENV] [--only loom]

The tools are installed, pinned, in a temporary environment unless ``--tools`` names one that has
them. R, PLINK 1.9, PLINK 2 and bcftools are used where they are installed (Debian: r-base-core,
r-bioc-geoquery, plink1.9, plink2, bcftools). ``--package NAME=VENV`` adds a column for the program
that is installed there, such as an older one. GEO, Cell Ranger, salmon, kallisto, HTSeq,
featureCounts, MaxQuant, QIIME 2 and Xena have no writer that installs here: their files are written
in their layout.
"""

import argparse
import gzip
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

PINS = [
    "scanpy==1.11.5",
    "anndata==0.12.6",
    "numpy==2.2.6",
    "scipy==1.16.3",
    "pandas==2.3.3",
    "h5py==3.15.1",
    "loompy==3.0.8",
    "cmapPy==4.0.1",
    "biom-format==2.1.18",
    "cyvcf2==0.35.0",
    "bgen==1.10.3",
    "pyarrow==26.0.1",
    "pyreadstat==1.3.7",
    "openpyxl==3.1.5",
    "liac-arff==2.5.0",
    "mudata==0.3.10",
    "pyreadr==0.5.8",
]
N_ROWS, N_COLUMNS = 12, 20
IDS = [f"s{i:02}" for i in range(N_ROWS)]
STATE = [("ill", "well", "well")[i % 3] for i in range(N_ROWS)]
NAMES = [f"g{j}" for j in range(N_COLUMNS)]
READ_BACK = """
import json, sys, numpy, zarr
from pathlib import Path
from srs_ooc.store.store import Store
store = Store.open(Path(sys.argv[1]))
stored = zarr.open_group(sys.argv[1], mode="r")["values"][:]
values = numpy.empty(stored.shape)
values[numpy.asarray(store.array("positions")).astype(int)] = stored
classes = store.manifest.classes
print(json.dumps({"values": values.T.tolist(), "names": list(store.names), "ids":
    list(store.row_ids), "target": [classes[int(i)] if classes else i for i in store.target()]}))
"""


def lib(name: str) -> Any:
    """Return a module of the tools."""
    return importlib.import_module(name)


@dataclass
class Table:
    """What a file holds, as a reader says: values (n_rows, n_columns) with NaN where missing."""

    values: Any
    names: list[str] = field(default_factory=lambda: NAMES)
    ids: list[str] = field(default_factory=lambda: IDS)
    target: list[str] = field(default_factory=lambda: STATE)


@dataclass
class Kind:
    """A kind of file: its maker, its own reader, and how it is ingested.

    ``make(folder)`` returns its path; ``read(path)`` what it holds; ``how`` are options, ``after``
    those of the file that the refusal's line makes; ``by_hand`` converts where the refusal says so
    in words.
    """

    name: str
    tools: str
    make: Callable[[Path], Path]
    read: Callable[[Path], Table]
    how: tuple[str, ...] = ("--target", "state")
    after: tuple[str, ...] = ("--target", "state")
    by_hand: Callable[[Path, Path], None] | None = None


def run(*words: Any, cwd: Path | None = None) -> str:
    """Run a tool, and return what it printed."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, cwd=cwd, check=False)
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {(done.stderr or done.stdout)[-500:]}")
    return done.stdout


def counts() -> Any:
    """Return whole numbers, most of them 0, samples x features."""
    np = lib("numpy")
    rng = np.random.default_rng(58)
    return rng.poisson(0.7, (N_ROWS, N_COLUMNS)) * rng.integers(1, 9, (N_ROWS, N_COLUMNS))


def shares(n_missing: int = 3) -> Any:
    """Return quarters, of which some are missing."""
    values = counts() - 2.25
    values[range(n_missing), range(4, 4 + n_missing)] = lib("numpy").nan
    return values


def frame(values: Any = None) -> Any:
    """Return a frame of samples with their state last."""
    values = shares() if values is None else values
    return lib("pandas").DataFrame(values, IDS, NAMES).assign(state=STATE)


def of_frame(table: Any, ids: Any = None) -> Table:
    """Return what a frame holds, with its state."""
    cells = table.drop(columns=["state"])
    ids = [*map(str, table.index)] if ids is None else ids
    return Table(cells.to_numpy(float), [*map(str, cells.columns)], ids, [*table["state"]])


def people(folder: Path) -> tuple[str, ...]:
    """Return what names a table of the samples, in another order than theirs."""
    lines = [f"{one},{state}\n" for one, state in zip(IDS, STATE, strict=True)]
    (folder / "people.csv").write_text("id,state\n" + "".join(lines[::-1]))
    return ("--samples", str(folder / "people.csv"), "--id", "id", "--target", "state")


PEOPLE = ("PEOPLE",)
"""Stands for the options of a table of the samples."""

# Cells


def ten_x(folder: Path, version_2: bool = False) -> Path:
    """Write 10x's HDF5 in the layout of Cell Ranger."""
    np, matrix = lib("numpy"), lib("scipy.sparse").csr_matrix(counts())
    with lib("h5py").File(folder / "t.h5", "w") as file:
        group = file.create_group("GRCh38" if version_2 else "matrix")
        group["data"], group["barcodes"] = matrix.data.astype("i4"), np.array(IDS, "S18")
        group["indices"], group["indptr"] = matrix.indices.astype("i8"), matrix.indptr.astype("i8")
        group["shape"] = np.array([N_COLUMNS, N_ROWS], "i4")
        ids = np.array([f"ENSG{j}" for j in range(N_COLUMNS)], "S15")
        if version_2:
            group["genes"], group["gene_names"] = ids, np.array(NAMES, "S")
        else:
            features = group.create_group("features")
            features["id"], features["name"] = ids, np.array(NAMES, "S")
            features["feature_type"] = np.array(["Gene Expression"] * N_COLUMNS, "S")
            features["genome"] = np.array(["GRCh38"] * N_COLUMNS, "S")
    return folder / "t.h5"


def mtx(folder: Path) -> Path:
    """Write a folder of MatrixMarket as Cell Ranger 3 has it, the matrix by SciPy."""
    (folder := folder / "cells").mkdir()
    lib("scipy.io").mmwrite(folder / "matrix.mtx", lib("scipy.sparse").coo_matrix(counts().T))
    genes = "".join(f"ENSG{j}\t{name}\tGene Expression\n" for j, name in enumerate(NAMES))
    for name, text in (("features", genes), ("barcodes", "".join(f"{one}\n" for one in IDS))):
        (folder / f"{name}.tsv.gz").write_bytes(gzip.compress(text.encode()))
    plain = folder / "matrix.mtx"
    (folder / "matrix.mtx.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    return folder


def of_cells(cells: Any) -> Table:
    """Return what AnnData holds."""
    cells.var_names_make_unique()
    values = cells.X.toarray() if hasattr(cells.X, "toarray") else cells.X
    target = cells.obs.get("state", STATE)
    return Table(values.astype(float), [*cells.var_names], [*cells.obs_names], [*target])


def loom(folder: Path) -> Path:
    """Write loom by loompy."""
    np, columns = lib("numpy"), {"Gene": lib("numpy").array(NAMES)}
    rows = {"CellID": np.array(IDS), "state": np.array(STATE)}
    lib("loompy").create(str(folder / "t.loom"), counts().T.astype("f4"), columns, rows)
    return folder / "t.loom"


def of_loom(path: Path) -> Table:
    """Read loom by loompy."""
    with lib("loompy").connect(str(path), "r") as file:
        names, ids = [*map(str, file.ra["Gene"])], [*map(str, file.ca["CellID"])]
        return Table(file[:, :].T.astype(float), names, ids, [*map(str, file.ca["state"])])


def h5mu(folder: Path) -> Path:
    """Write MuData of one kind."""
    cells = lib("anndata").AnnData(counts().astype("f4"), frame()[["state"]])
    cells.var_names = NAMES
    lib("mudata").MuData({"rna": cells}).write(folder / "t.h5mu")
    return folder / "t.h5mu"


# Microbiome, plates and panels


def otus() -> Any:
    """Return a table of biom-format with the states of its samples."""
    about = [{"state": state} for state in STATE]
    return lib("biom").Table(counts().T, NAMES, IDS, sample_metadata=about)


def biom(how: str) -> Callable[[Path], Path]:
    """Return what writes BIOM in one of its ways."""

    def write(folder: Path) -> Path:
        path = folder / f"t.{how}"
        if how == "hdf5":
            with lib("h5py").File(path, "w") as file:
                otus().to_hdf5(file, "tables of files")
        else:
            path.write_text(getattr(otus(), f"to_{how}")(*["tables of files"] * (how == "json")))
        return path

    return write


def of_biom(path: Path) -> Table:
    """Read BIOM by biom-format."""
    table = lib("biom").load_table(str(path))
    about = table.metadata()
    target = STATE if about is None else [one["state"] for one in about]
    ids, names = [*map(str, table.ids())], [*map(str, table.ids("observation"))]
    return Table(table.matrix_data.toarray().T, names, ids, target)


def gct(folder: Path, how: str = "gct") -> Path:
    """Write GCT 1.3 or GCTX by cmapPy, which uses a name that NumPy 2 no longer has."""
    vars(lib("numpy"))["string_"] = lib("numpy").bytes_
    table, path = frame(), folder / f"t.{how}"
    cells = table[NAMES].T.rename_axis("rid").rename_axis("cid", axis=1)
    about = table[["state"]].rename_axis("cid").rename_axis("chd", axis=1)
    one = lib("cmapPy.pandasGEXpress.GCToo").GCToo(cells, col_metadata_df=about)
    how_written = {} if how == "gct" else {"convert_back_to_neg_666": True}
    lib(f"cmapPy.pandasGEXpress.write_{how}").write(one, str(path), **how_written)
    return path if path.exists() else path.with_name(path.name + "." + how)


def gct_2(folder: Path) -> Path:
    """Write GCT 1.2 as text: cmapPy writes 1.3 only."""
    cells = frame()[NAMES].T
    cells.insert(0, "Description", "na")
    text = cells.to_csv(sep="\t", index_label="Name", na_rep="NaN", lineterminator="\n")
    (folder / "t.gct").write_text(f"#1.2\n{N_COLUMNS}\t{N_ROWS}\n{text}")
    return folder / "t.gct"


def of_gct(path: Path) -> Table:
    """Read GCT or GCTX by cmapPy."""
    one = lib("cmapPy.pandasGEXpress.parse").parse(str(path))
    ids, about = [*one.data_df.columns], one.col_metadata_df
    target = [*about.loc[ids, "state"]] if "state" in about else STATE
    return Table(one.data_df.to_numpy(float).T, [*one.data_df.index], ids, target)


def geo(folder: Path) -> Path:
    """Write a series matrix as GEO does."""
    quoted = ['"' + '"\t"'.join(cells) + '"' for cells in (IDS, [f"state: {s}" for s in STATE])]
    cells = frame()[NAMES].T.to_csv(sep="\t", index_label="ID_REF", na_rep="")
    text = '!Series_title\t"t"\n!Series_geo_accession\t"GSE1"\n!Series_summary\t"s"\n\n'
    text += f"!Sample_title\t{quoted[0]}\n!Sample_geo_accession\t{quoted[0]}\n"
    text += f"!Sample_characteristics_ch1\t{quoted[1]}\n!series_matrix_table_begin\n{cells}"
    path = folder / "GSE1_series_matrix.txt.gz"
    path.write_bytes(gzip.compress(f"{text}!series_matrix_table_end\n".encode()))
    return path


def of_geo(path: Path) -> Table:
    """Read a series matrix by GEOquery."""
    out = path.parent / "geoquery.csv"
    run(
        "Rscript",
        "-e",
        f"""suppressMessages(library(GEOquery))
        e <- suppressMessages(getGEO(filename="{path}", getGPL=FALSE))
        write.csv(data.frame(t(exprs(e)), state=pData(e)[["state:ch1"]]), "{out}")""",
    )
    return of_frame(lib("pandas").read_csv(out, index_col=0))


# Genotypes


def genotypes(folder: Path) -> Path:
    """Write a VCF, some calls of which are missing, and the phenotypes of its samples."""
    called = ("0/0", "0/1", "1/1", "./.")
    lines = ["##fileformat=VCFv4.2", "##contig=<ID=1>"]
    lines += ['##FORMAT=<ID=GT,Number=1,Type=String,Description="">']
    lines += ["\t".join(["#CHROM POS ID REF ALT QUAL FILTER INFO FORMAT".replace(" ", "\t"), *IDS])]
    for j, row in enumerate(lib("numpy").minimum(counts().T, 3).tolist()):
        cells = [called[x] for x in row]
        lines.append("\t".join(f"1 {j + 1} g{j} A G . . . GT".split() + cells))
    (folder / "plain.vcf").write_text("\n".join([*lines, ""]))
    people(folder)
    rows = [(a, 1 + (b == "ill")) for a, b in zip(IDS, STATE, strict=True)]
    text = "".join(f"0 {one} {code}\n" for one, code in rows)
    (folder / "pheno.txt").write_text(text)
    (folder / "named.txt").write_text(f"FID IID ill\n{text}")
    return folder / "plain.vcf"


def plink(*words: str, makes: str) -> Callable[[Path], Path]:
    """Return what makes a file of genotypes by PLINK 2."""

    def write(folder: Path) -> Path:
        how = ("--vcf", genotypes(folder), "--pheno", folder / "named.txt")
        run("plink2", *how, *words, "--out", folder / "t", cwd=folder)
        return folder / makes

    return write


CODES = ["2" if one == "ill" else "1" for one in STATE]


def of_raw(path: Path, itself: bool = False) -> Table:
    """Read a ``.raw``: samples x features, PHENOTYPE the target.

    Of a file that is ingested ``itself`` names end in the allele, and 1 and 2 are control and case.
    """
    table = lib("pandas").read_csv(path, sep=r"\s+", dtype={"IID": str, "PHENOTYPE": str})
    cells, target = table.iloc[:, 6:], table["PHENOTYPE"]
    names = [one if itself else one.rpartition("_")[0] for one in cells.columns]
    target = target.map({"1": "control", "2": "case"}) if itself else target
    return Table(cells.to_numpy(float), names, [*table["IID"]], [*target])


def of_traw(path: Path) -> Table:
    """Read a ``.traw``."""
    table = lib("pandas").read_csv(path, sep="\t")
    return Table(table.iloc[:, 6:].to_numpy(float).T, [*table["SNP"]], [*table.columns[6:]])


def exported(*words: str) -> Callable[[Path], Table]:
    """Return what PLINK 2 exports of a file of genotypes."""

    def read(path: Path) -> Table:
        out = path.parent / "exported"
        given = [word.replace("PATH", str(path)) for word in words]
        run("plink2", *given, "--export", "A", "--out", out)
        table = of_raw(out.with_suffix(".raw"))
        table.target = STATE
        return table

    return read


def bed_with_pheno(folder: Path) -> Path:
    """Write a .bed whose target stands in a phenotype file without a header."""
    run("plink2", "--vcf", genotypes(folder), "--make-bed", "--out", folder / "t")
    return folder / "t.bed"


def of_bed(path: Path) -> Table:
    """Read a .bed with its phenotype file by PLINK 1.9, which counts A1 as it is told."""
    out, pheno = path.parent / "own", path.parent / "pheno.txt"
    words = ("--bfile", path.with_suffix(""), "--pheno", pheno, "--keep-allele-order")
    run("plink1.9", *words, "--allow-no-sex", "--recode", "A", "--out", out)
    return of_raw(out.with_suffix(".raw"))


def compressed_vcf(kind: str) -> Callable[[Path], Path]:
    """Return what writes a VCF or BCF by bcftools."""

    def write(folder: Path) -> Path:
        path = folder / f"t.{'vcf.gz' if kind == 'z' else 'bcf'}"
        run("bcftools", "view", f"-O{kind}", "-o", path, genotypes(folder))
        return path

    return write


def bgen(folder: Path) -> Path:
    """Write BGEN 1.2 by PLINK 2, reference first, and its samples."""
    path = plink("--export", "bgen-1.2", "ref-first", "bits=8", makes="t.bgen")(folder)
    shutil.copy(folder / "t.sample", folder / "SAMPLES")
    return path


def of_bgen(path: Path) -> Table:
    """Read BGEN by bgen: doses of the first allele."""
    np = lib("numpy")
    with lib("bgen").BgenReader(str(path), sample_path=str(path.with_suffix(".sample"))) as file:
        names, cells = [], []
        for one in file:
            names.append(one.rsid)
            cells.append(one.probabilities @ np.array([2, 1, 0]))
        return Table(np.array(cells).T, names, [*file.samples])


# Programs of statistics and tables


def mat(folder: Path) -> Path:
    """Write MATLAB 5 by SciPy."""
    texts = {k: lib("numpy").array(v, object) for k, v in (("names", NAMES), ("ids", IDS))}
    state = lib("numpy").array(STATE, object)
    lib("scipy.io").savemat(folder / "t.mat", {"X": shares(), "state": state, **texts})
    return folder / "t.mat"


def of_mat(path: Path) -> Table:
    """Read MATLAB 5 by SciPy."""
    found = lib("scipy.io").loadmat(path, chars_as_strings=True)
    texts = [[str(one[0]) for one in found[name].ravel()] for name in ("names", "ids", "state")]
    return Table(found["X"], *texts)


def arff(folder: Path) -> Path:
    """Write ARFF by liac-arff."""
    told = [("id", "STRING"), *((name, "REAL") for name in NAMES), ("state", ["ill", "well"])]
    np, rows = lib("numpy"), zip(IDS, shares().tolist(), STATE, strict=True)
    cells = [[i, *(None if np.isnan(x) else x for x in row), s] for i, row, s in rows]
    text = lib("arff").dumps({"relation": "t", "attributes": told, "data": cells})
    (folder / "t.arff").write_text(text)
    return folder / "t.arff"


def sparse_arff(folder: Path) -> Path:
    """Write sparse ARFF by liac-arff."""
    told = [*((name, "REAL") for name in NAMES), ("state", ["none", "ill", "well"])]
    rows = zip(counts().tolist(), STATE, strict=True)
    cells = [{j: x for j, x in enumerate(row) if x} | {N_COLUMNS: s} for row, s in rows]
    text = lib("arff").dumps({"relation": "t", "attributes": told, "data": cells})
    (folder / "t.arff").write_text(text)
    return folder / "t.arff"


def of_arff(path: Path) -> Table:
    """Read ARFF by liac-arff."""
    arff_, is_sparse = lib("arff"), "{" in path.read_text().partition("@DATA")[2]
    found = arff_.loads(path.read_text(), return_type=arff_.LOD if is_sparse else arff_.DENSE)
    names = [name for name, _ in found["attributes"]]
    rows = [row if is_sparse else dict(enumerate(row)) for row in found["data"]]
    empty = 0.0 if is_sparse else None
    named = [[row.get(j, empty) for j in range(len(names))] for row in rows]
    table = lib("pandas").DataFrame(named, columns=names)
    ids = [*table.pop("id")] if "id" in names else [str(i + 1) for i in range(N_ROWS)]
    return of_frame(table, ids)


def by_r(code: str, name: str) -> Callable[[Path], Path]:
    """Return what has R write a frame; ``d`` is the frame, ``OUT`` the file."""

    def write(folder: Path) -> Path:
        frame().to_csv(folder / "in.csv")
        code_ = code.replace("OUT", str(folder / name))
        run("Rscript", "-e", f'd <- read.csv("{folder}/in.csv", row.names=1); {code_}')
        return folder / name

    return write


def by_pandas(code: Callable[[Any, Path], Any], name: str) -> Callable[[Path], Path]:
    """Return what has a library write the frame."""

    def write(folder: Path) -> Path:
        code(frame(), folder / name)
        return folder / name

    return write


def npz(folder: Path) -> Path:
    """Write several arrays by NumPy."""
    np = lib("numpy")
    texts = {"names": np.array(NAMES), "ids": np.array(IDS), "state": np.array(STATE)}
    np.savez(folder / "t.npz", X=shares(), **texts)
    return folder / "t.npz"


def of_npz(path: Path) -> Table:
    """Read them by NumPy."""
    found = lib("numpy").load(path)
    texts = [[*map(str, found[name])] for name in ("names", "ids", "state")]
    return Table(found["X"], *texts)


def indexed(table: Any) -> Table:
    """Return what a frame holds whose first column are the ids."""
    return of_frame(table.set_index(table.columns[0]))


def stream(table: Any, path: Path) -> None:
    """Write a stream of Arrow by PyArrow."""
    arrow = lib("pyarrow")
    given = arrow.Table.from_pandas(table)
    with arrow.OSFile(str(path), "wb") as file, arrow.ipc.new_stream(file, given.schema) as out:
        out.write_table(given)


def of_r(path: Path) -> Table:
    """Read ``.rds`` or ``.RData`` by pyreadr."""
    return of_frame(next(iter(lib("pyreadr").read_r(str(path)).values())))


# Folders and texts of one sample or one feature a line


def each_sample(name: str, text: Callable[[Any], str]) -> Callable[[Path], Path]:
    """Return what writes a file of each sample into a folder."""

    def write(folder: Path) -> Path:
        (top := folder / "samples").mkdir()
        for one, row in zip(IDS, counts().tolist(), strict=True):
            path = top / name.replace("ID", one)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text(zip(NAMES, row, strict=True)))
        return top

    return write


def lines_of(rows: Any) -> str:
    """Return rows as lines of a table separated by tabs."""
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def htseq(cells: Any) -> str:
    """Return what htseq-count prints."""
    return lines_of([*cells, ("__no_feature", 3), ("__ambiguous", 1)])


def salmon(cells: Any) -> str:
    """Return a quant.sf."""
    rows = ((name, 600, 450.5, x, 2 * x) for name, x in cells)
    return lines_of([("Name", "Length", "EffectiveLength", "TPM", "NumReads"), *rows])


def kallisto(cells: Any) -> str:
    """Return an abundance.tsv."""
    rows = ((name, 600, 450.5, 2 * x, x) for name, x in cells)
    return lines_of([("target_id", "length", "eff_length", "est_counts", "tpm"), *rows])


def feature_counts(folder: Path) -> Path:
    """Write what featureCounts does."""
    rows = ((n, "chr1", 1, 600, "+", 600, *x) for n, x in zip(NAMES, counts().T, strict=True))
    head = ("Geneid", "Chr", "Start", "End", "Strand", "Length", *IDS)
    text = '# Program:featureCounts v2.0.3; Command:"featureCounts"\n' + lines_of([head, *rows])
    (folder / "counts.txt").write_text(text)
    return folder / "counts.txt"


def max_quant(folder: Path) -> Path:
    """Write some of the columns of a proteinGroups.txt."""
    head = ["Protein IDs", "Majority protein IDs", *(f"LFQ intensity {one}" for one in IDS)]
    rows = ([f"{n};X", n, *x, ""] for n, x in zip(NAMES, 1 + counts().T, strict=True))
    (folder / "proteinGroups.txt").write_text(lines_of([[*head, "Reverse"], *rows]))
    return folder / "proteinGroups.txt"


def qza(folder: Path) -> Path:
    """Write BIOM 2.1 in an archive as QIIME 2 does."""
    path, top = biom("hdf5")(folder), "9a7d3e5c-0d5e-4ff3-9e0a-6dd6ee9ee4c5"
    with zipfile.ZipFile(folder / "t.qza", "w") as file:
        file.writestr(f"{top}/metadata.yaml", "type: FeatureTable[Frequency]\n")
        file.write(path, f"{top}/data/feature-table.biom")
    return folder / "t.qza"


def xena(folder: Path) -> Path:
    """Write a feature a row, as UCSC Xena does."""
    cells = frame()[NAMES].T
    cells.to_csv(folder / "t.tsv.gz", sep="\t", index_label="sample")
    return folder / "t.tsv.gz"


def known(values: Any, names: list[str] = NAMES) -> Callable[[Path], Table]:
    """Return what a file holds that has no reader of its own."""
    return lambda path: Table(values().astype(float), names)


def kinds() -> list[Kind]:
    """Return all kinds, in the order of the issue's table."""
    pandas, stat = lib("pandas"), lib("pyreadstat")

    def other(name: str, tools: str, code: Any, file: str, read: Any, **more: Any) -> Kind:
        return Kind(name, tools, by_pandas(code, file), read, **more)

    def sheet(path: Path, new: Path) -> None:
        pandas.read_excel(path).to_csv(f"{new}.csv", index=False)

    named = {"after": ("--target", "state", "--row-ids", "index")}
    reset = pandas.DataFrame.reset_index
    scanpy, lfq = lib("scanpy"), [f"LFQ intensity {one}" for one in IDS]
    vcf = exported("--vcf", "PATH", "--vcf-half-call", "missing")
    bcf = exported("--bcf", "PATH", "--vcf-half-call", "missing")
    pheno = ("--samples", "FOLDER/pheno.txt", "--id", "IID", "--target", "PHENO1")
    traw = ("--samples", "FOLDER/named.csv", "--id", "IID", "--target", "state")
    turned = ("--orient", "features", *PEOPLE)
    return [
        Kind("1 10x .h5, v3", "h5py; scanpy", ten_x,
             lambda path: of_cells(scanpy.read_10x_h5(path, gex_only=False)), PEOPLE),
        Kind("2 10x .h5, v2", "h5py; scanpy", lambda folder: ten_x(folder, True),
             lambda path: of_cells(scanpy.read_10x_h5(path, gex_only=False)), PEOPLE),
        Kind("3 MTX folder", "SciPy; scanpy", mtx,
             lambda path: of_cells(scanpy.read_10x_mtx(path)), PEOPLE),
        Kind("4 loom", "loompy", loom, of_loom),
        Kind("5 BIOM 2.1", "biom-format", biom("hdf5"), of_biom),
        Kind("6 BIOM 1.0", "biom-format", biom("json"), of_biom),
        Kind("7 BIOM TSV", "biom-format", biom("tsv"), of_biom, PEOPLE),
        Kind("8 GCT 1.2", "text; cmapPy", gct_2, of_gct, PEOPLE),
        Kind("9 GCT 1.3", "cmapPy", gct, of_gct),
        Kind("10 GCTX", "cmapPy", lambda folder: gct(folder, "gctx"), of_gct),
        Kind("11 GEO series matrix", "text; GEOquery", geo, of_geo),
        Kind("12 PLINK .raw", "PLINK 2; pandas", plink("--export", "A", makes="t.raw"),
             lambda path: of_raw(path, itself=True), ()),
        Kind("13 PLINK .traw", "PLINK 2; pandas", plink("--export", "A-transpose", makes="t.traw"),
             of_traw, traw),
        Kind("14 PLINK pheno beside .bed", "PLINK 2; PLINK 1.9", bed_with_pheno, of_bed, pheno),
        Kind("15 VCF", "bcftools; PLINK 2", compressed_vcf("z"), vcf, PEOPLE),
        Kind("16 BCF", "bcftools; PLINK 2", compressed_vcf("b"), bcf, PEOPLE),
        Kind("17 BGEN", "PLINK 2; bgen", bgen, of_bgen, PEOPLE, PEOPLE),
        Kind("18 MATLAB 5", "SciPy", mat, of_mat),
        Kind("19 ARFF", "liac-arff", arff, of_arff, ("--target", "state", "--row-ids", "id")),
        Kind("19 ARFF, sparse", "liac-arff", sparse_arff, of_arff),
        Kind("20 write.csv", "R; pandas", by_r('write.csv(d, "OUT")', "t.csv"),
             lambda path: of_frame(pandas.read_csv(path, index_col=0))),
        Kind("20 write.table", "R; pandas", by_r('write.table(d, "OUT")', "t.txt"),
             lambda path: of_frame(pandas.read_csv(path, sep=" "))),
        other("20 to_csv, row numbers", "pandas", lambda d, p: d.reset_index(drop=True).to_csv(p),
              "t.csv", lambda path: of_frame(pandas.read_csv(path, index_col=0))),
        Kind("21 .npz", "NumPy", npz, of_npz),
        Kind("22 .rds", "R; pyreadr", by_r('saveRDS(d, "OUT")', "t.rds"), of_r),
        Kind("22 .RData", "R; pyreadr", by_r('save(d, file="OUT")', "t.RData"), of_r),
        other("23 pickle", "pandas", lambda d, p: d.to_pickle(p), "t.pkl",
              lambda path: of_frame(pandas.read_pickle(path))),
        other("23 stream of Arrow", "PyArrow", stream, "t.arrows", lambda path: of_frame(
            lib("pyarrow").ipc.open_stream(str(path)).read_pandas())),
        other("24 SPSS", "pyreadstat", lambda d, p: stat.write_sav(reset(d), str(p)), "t.sav",
              lambda path: indexed(stat.read_sav(str(path))[0]), **named),
        other("24 Stata", "pandas", lambda d, p: d.to_stata(p), "t.dta",
              lambda path: indexed(pandas.read_stata(path)), **named),
        other("24 SAS transport", "pyreadstat", lambda d, p: stat.write_xport(reset(d), str(p)),
              "t.xpt", lambda path: indexed(stat.read_xport(str(path))[0]), **named),
        other("24 Excel", "openpyxl", lambda d, p: d.to_excel(p), "t.xlsx",
              lambda path: indexed(pandas.read_excel(path)), by_hand=sheet),
        Kind("25 HTSeq", "text", each_sample("ID.counts", htseq), known(counts), (), PEOPLE),
        Kind("25 salmon", "text", each_sample("ID/quant.sf", salmon), known(counts), (), PEOPLE),
        Kind("25 kallisto", "text", each_sample("ID/abundance.tsv", kallisto), known(counts), (),
             PEOPLE),
        Kind("25 featureCounts", "text", feature_counts, known(counts), PEOPLE, turned),
        Kind("25 MaxQuant", "text", max_quant,
             lambda path: Table(1.0 + counts(), NAMES, lfq), PEOPLE, ("LFQ",)),
        Kind("25 QIIME 2 .qza", "text; biom-format", qza,
             lambda path: of_biom(path.with_name("t.hdf5")), PEOPLE),
        Kind("25 .h5mu", "mudata", h5mu,
             lambda path: of_cells(lib("mudata").read(str(path)).mod["rna"]), ("::/mod/rna/X",
             "--target", "state")),
        Kind("25 Xena .tsv.gz", "text; pandas", xena, known(shares), turned),
    ]  # fmt: skip


# Ingesting them, and comparing


@dataclass
class Program:
    """A Python that has srs-ooc."""

    python: str

    def ingest(self, path: Path, how: tuple[str, ...], folder: Path) -> tuple[Any, str]:
        """Return what a store of a file holds; else None and what was said."""
        store = folder / "t.zarr"
        shutil.rmtree(store, ignore_errors=True)
        inner = "".join(one for one in how if one.startswith("::"))
        words = [one for one in how if not one.startswith("::")]
        call = [self.python, "-m", "srs_ooc", "ingest", f"{path}{inner}", str(store), *words]
        call += ["--code-dtype", "uint8"]
        done = subprocess.run(call, capture_output=True, text=True, cwd=folder, check=False)
        if done.returncode:
            return None, done.stderr.strip()
        return json.loads(run(self.python, "-c", READ_BACK, store, cwd=folder)), ""


def options(how: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """Return options, what stands for others filled in."""
    rows = [*zip(IDS, STATE, strict=True)]
    for name, head, before in (("named", "IID", "0_"), ("lfq", "id", "LFQ intensity ")):
        text = "".join(f"{before}{one},{state}\n" for one, state in rows)
        (folder / f"{name}.csv").write_text(f"{head},state\n{text}")
    lfq = ("--samples", str(folder / "lfq.csv"), "--id", "id", "--target", "state")
    given = [people(folder) if (one,) == PEOPLE else lfq if one == "LFQ" else (one,) for one in how]
    return tuple(word.replace("FOLDER", str(folder)) for words in given for word in words)


def compared(found: Any, own: Table) -> str:
    """Return how a store differs from what the tool's reader says, in a line."""
    np = lib("numpy")
    values, shape = np.array(found["values"]), "{} x {}".format(*np.shape(found["values"]))
    if values.shape != own.values.shape:
        return f"WRONG: {shape}, not {own.values.shape[0]} x {own.values.shape[1]}"
    own.values = own.values.astype(float)
    if [*map(str, found["names"])] == [*map(str, own.names)]:
        order = [*map(str, found["ids"])]
        if sorted(order) == sorted(own.ids):  # rows may be in any order
            places = [own.ids.index(one) for one in order]
            own = Table(own.values[places], own.names, order, [own.target[i] for i in places])
    missing = np.isnan(own.values)
    same = (values == own.values) | (missing & np.isnan(values))
    said = f"{shape}, {int(same.sum())} of {same.size} cells"
    if not same.all() and ((values == 2 - own.values) | (missing & np.isnan(values))).all():
        said = f"{shape}, all cells 2 - x"
    if missing.any() or np.isnan(values).any():
        said += f", {int((missing & np.isnan(values)).sum())} of {int(missing.sum())} missing"
    pairs = (("names", own.names), ("ids", own.ids), ("target", own.target))
    wrong = [name for name, cells in pairs if [*map(str, found[name])] != [*map(str, cells)]]
    is_right = not wrong and (bool(same.all()) or said.endswith("2 - x"))
    said += f"; {', '.join(wrong)} differ" if wrong else "; names, ids, target"
    return said if is_right else f"WRONG: {said}"


def short(said: str, folder: Path) -> str:
    """Return the beginning of a message, in a line, without the folder."""
    line = " ".join(said.replace(f"{folder}/", "").removeprefix("srs-ooc: ").split())
    return line[:70].rpartition(" ")[0] + " ..."


def converted(said: str, path: Path, kind: Kind, program: Program, folder: Path) -> str:
    """Run the line that a refusal names, and return what comes of the file that it makes."""
    lines, new = re.findall(r"`([^`]+)`", said), folder / "NEW"
    if kind.by_hand is not None:
        kind.by_hand(path, new)
    elif not lines or "FILE" not in (line := next((x for x in lines if "NEW" in x), "")):
        return f"refused: {short(said, folder)}"
    else:
        line = line.replace("SAMPLES", str(folder / "SAMPLES")).replace("FILE", str(path))
        tools = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        command, env = re.sub(r"\bNEW\b", str(new), line), os.environ | tools
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, env=env, check=False
        )
        if done.returncode:
            return f"refused, and its line fails: {done.stderr.split()[-1]}"
    endings = (".pgen", ".csv", ".parquet", ".tsv", ".biom", ".npy", "")
    places = [new.with_name(f"NEW{one}") for one in endings]
    if (made := next((one for one in places if one.exists()), None)) is None:
        return "refused, and its line makes nothing"
    found, said = program.ingest(made, options(kind.after, folder), folder)
    if found is None:
        return f"refused, and so is what its line makes: {short(said, folder)}"
    return f"by its line: {compared(found, kind.read(path))}"


def tried(kind: Kind, program: Program) -> str:
    """Return what comes of a kind of file."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        try:
            path = kind.make(folder)
            own = kind.read(path)
        except (FileNotFoundError, RuntimeError) as error:
            return f"not tried: {str(error)[:80]}"
        found, said = program.ingest(path, options(kind.how, folder), folder)
        if found is not None:
            return compared(found, own)
        bare, _ = program.ingest(path, ("--no-target",), folder)
        if bare is not None:  # taken, if nothing is asked of it
            said = compared(bare | {"target": own.target}, own).replace(", target", "")
            return f"with --no-target: {said}"
        return converted(said, path, kind, program, folder)


def versions() -> str:
    """Return the versions of the tools."""
    found = [f"{one.partition('==')[0]} {version(one.partition('==')[0])}" for one in PINS]
    for words in (("Rscript", "--version"), ("plink1.9", "--version"), ("plink2", "--version"),
                  ("bcftools", "--version")):  # fmt: skip
        if shutil.which(words[0]):
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            found.append((done.stdout or done.stderr).splitlines()[0].strip())
    return ", ".join(found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tools", type=Path, help="an environment that has the tools")
    parser.add_argument("--package", action="append", default=[], metavar="NAME=VENV")
    parser.add_argument("--only", default="", help="kinds whose name holds this")
    parser.add_argument("--inside", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.inside:
        with tempfile.TemporaryDirectory() as folder:
            tools = given.tools or Path(folder) / "tools"
            if given.tools is None:
                venv.create(tools, with_pip=True)
                run(tools / "bin" / "pip", "install", "-q", *PINS)
            words = [str(tools / "bin" / "python"), "-W", "ignore", __file__, *sys.argv[1:]]
            sys.exit(subprocess.call([*words, "--inside", sys.executable]))
    programs = {"now": Program(given.inside)}
    for one in given.package:
        name, _, place = one.partition("=")
        programs = {name: Program(f"{place}/bin/python"), **programs}
    print(f"| kind | made by; read by | {' | '.join(programs)} |")
    print(f"|---|---|{'---|' * len(programs)}")
    for kind in kinds():
        if given.only in kind.name:
            said = [tried(kind, one).replace("|", "\\|") for one in programs.values()]
            print(f"| {kind.name} | {kind.tools} | {' | '.join(said)} |", flush=True)
    print(f"\n{versions()}")


if __name__ == "__main__":
    main()
