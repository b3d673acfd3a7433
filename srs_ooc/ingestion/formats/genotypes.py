"""Genotypes of PLINK, read variant by variant: ``.bed``, ``.bim``, ``.fam``; ``.pgen`` and its two.

The formats are described at https://www.cog-genomics.org/plink/1.9/formats and, those of PLINK 2,
at https://www.cog-genomics.org/plink/2.0/formats.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from srs_ooc.base.arrays import Indices, Reals
from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import unfit
from srs_ooc.base.text import MB
from srs_ooc.ingestion import formats
from srs_ooc.ingestion.csv import TextForm, parse_decimal
from srs_ooc.ingestion.formats import Table, TextCoder
from srs_ooc.ingestion.formats.files import File
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.store.bed import BedFile

_BIM, _FAM = b"CHROM ID CM POS ALT REF".split(), b"FID IID PAT MAT SEX PHENO1".split()
VARIANT = ("chromosome", "id", "cM", "position", "counted_allele", "other_allele")
"""What is known of a variant beside its name, in the order of a ``.bim`` file."""
_NEEDED = {b"CHROM", b"ID", b"POS", b"ALT", b"REF", b"IID"}
CALLED = {"PAT": "father", "MAT": "mother", "SEX": "sex", "PHENO1": "phenotype"}
"""What columns of PLINK's files of samples are called here."""
STATUS = {"1": "control", "2": "case"}
"""What a phenotype is called where it holds nothing else."""
_SEXES = {"1": "male", "2": "female", "M": "male", "F": "female"}
_UNKNOWN = {"0", "-9", "NA", "na", "nan"}
RAW = ["FID", "IID", "PAT", "MAT", "SEX", "PHENOTYPE"]
"""The first columns of a ``.raw`` file, which is a text table."""
TRAW = ["CHR", "SNP", "(C)M", "POS", "COUNTED", "ALT"]
"""Those of a ``.traw`` file: a variant a line, then FID_IID of each sample."""
_FORMATS = ("bed,", "pgen,", "vcf,", "bgen,")
_TOGETHER = "Get the three files again, as they belong together."
_KIN = {"FID", "PAT", "MAT", "father", "mother"}


class BedTable(Table):
    """Dosages of the first allele of each variant, A1: 0, 1, 2, NaN where missing.

    A feature is named by its variant's id; by ``id:position:A2:A1`` where that is "." or repeats.
    Row annotations are those of the ``.fam`` file, and ``id``: the IID, ``FID:IID`` where IIDs
    repeat.

    Raises
    ------
    InputError
        If one of the three files is missing, damaged or not of the size that the others say.
    """

    format = "bed, dosages of A1"
    narrow = True
    work_nbytes = 4 * MB
    beside = ".bim", ".fam"
    default_ids = "id"

    def __init__(self, file: File) -> None:
        self._file, self._path = file, file.path
        variants, samples = (_beside(file.path, suffix) for suffix in self.beside)
        columns = dict[str, list[str]]()
        for one in records_of(samples, _FAM):
            for name, cell in one.items():
                columns.setdefault(_text(name), []).append(_text(cell))
        self.annotations, self._variants = annotations_of(columns), variants
        self.default_target = "phenotype" if "phenotype" in self.annotations else None
        self.names: Collection[str] = formats.distinct_names(
            lambda: (_text(of[names.index(b"ID")]) for names, of in _fields_of(variants, _BIM)),
            lambda: map(_by_place, records_of(variants, _BIM)),
        )
        n_samples, n_variants = len(self.annotations["id"]), len(self.names)
        self.shape: tuple[int, int] = (n_samples, n_variants)
        self._check(variants, samples)
        self.feature_columns = {
            name: formats.Names(n_variants, partial(self._column, at))
            for at, name in enumerate(VARIANT)
        }
        of_rows = Lease(f"what {samples.name} says of rows", 1000 * n_samples)
        self.opening, self.held = formats.finding_leases(n_variants, of_rows)

    def feature_cells(self) -> Iterator[list[str]]:
        """Yield what is said of each variant, in the order of a ``.bim``; 0 where nothing is."""
        for names, cells in _fields_of(self._variants, _BIM):
            given = {} if names is _BIM else dict(zip(names, cells, strict=True))
            yield [*map(_text, map(given.get, _BIM, repeat(b"0")) if given else cells)]

    def _column(self, at: int) -> Iterator[str]:
        return (cells[at] for cells in self.feature_cells())

    def _check(self, variants: Path, samples: Path) -> None:
        self.genotypes = bed = BedFile(self._path, *self.shape)
        bed.check(samples.name, variants.name)
        self._bed = bed

    def read(self, positions: Indices, pool: TextCoder) -> Reals:
        """Return the dosages of variants, each a row of the result."""
        return np.ascontiguousarray(self._bed.dosages(self._bed.lines(positions)))


class PgenTable(BedTable):
    """Dosages of ALT of each variant of PLINK 2, of two alleles each; phase is left out.

    Names and row annotations are as of :class:`BedTable`, and those of other columns of ``.psam``.

    Raises
    ------
    InputError
        Also if a variant has more alleles, or Pgenlib finds the file damaged.
    UsageError
        If Pgenlib is not installed.
    """

    format = "pgen, dosages of ALT, phase left out"
    beside = ".pvar", ".psam"

    def _check(self, variants: Path, samples: Path) -> None:
        n_samples, n_variants = self.shape
        pgenlib, self._lock = self._file.library(), Lock()
        with self._reading():
            self._reader = pgenlib.PgenReader(os.fsencode(self._path), raw_sample_ct=n_samples)
        if (found := self._reader.get_variant_ct()) != n_variants:
            expected = f"the {n_variants:,} variants of {variants.name}"
            raise unfit(self._path, expected, f"{found:,}", _TOGETHER)
        for one in records_of(variants, _BIM):
            if b"," in one[b"ALT"]:
                found = f"{_by_place(one)!r:.80}"
                remedy = "Leave such variants out, as with `plink2 --max-alleles 2`."
                raise unfit(self._path, "variants of two alleles", found, remedy)
        self.work_nbytes = 8 * MB + 64 * n_samples

    @contextmanager
    def _reading(self) -> Iterator[None]:
        how = (RuntimeError, "Pgenlib found")
        with formats.reading(self._path, "a .pgen file", _TOGETHER, *how), self._lock:
            yield  # a reader does one thing at a time

    def read(self, positions: Indices, pool: TextCoder) -> Reals:
        """Return the dosages of variants, each a row of the result."""
        dosages = np.empty((len(positions), self.shape[0]), np.float32)
        with self._reading():
            self._reader.read_dosages_list(positions.astype(np.uint32), dosages)
        dosages[dosages < 0] = np.nan
        return dosages


def is_plink(source: Mapping[str, Any]) -> bool:
    """Tell by what a manifest says of its source whether that was such files, or made of some."""
    return "plink" in source or str(source.get("format")).startswith(_FORMATS)


def cells_of_raw(name: str, cells: Iterable[bytes], form: TextForm) -> list[str]:
    """Return the cells of a column before the genotypes of a ``.raw`` file, where 0 is no sex."""
    gone = next(iter(form.missing or ("",)))
    texts = map(bytes.decode, cells)
    return [(_SEXES.get(cell, gone) if name == "SEX" else cell) for cell in texts]


def in_role(
    options: IngestOptions, role: tuple[str, str], cells: Any, ids: Any, inferred: dict[str, Any]
) -> Any:
    """Return the cells of a column as PLINK 1.9 and 2 take them beside genotypes.

    -9 is missing in targets and covariates; 0 is in a target that else holds 2, or 1 and 2. Of a
    family or parent 0 says that there is none: the row is a group or stratum by itself.

    Parameters
    ----------
    options : IngestOptions
        With the task.
    role : (str, str)
        What the column is (target, targets, events, covariates, groups, strata), and its name.
    cells, ids : sequence of str
        The cells, None where missing, and ids of their rows. Those that become missing get the
        first text that says so.
    inferred : dict
        For the manifest: below ``plink`` rows are counted by what is said of them.
    """
    (what, name), form = role, options.text
    alone, is_target = what in ("groups", "strata"), what in ("target", "targets", "events")
    if name.lstrip("#") in _KIN and what != "row_ids":
        codes, lot = {"0", ".", ""}, "each stands alone" if alone else "missing"
        said = f"with 0 as {name!r}, which is none: {lot}"
    elif is_target or what == "covariates":
        texts = {*cells} - {None, ""}
        codes = {text for text in texts if parse_decimal(text.encode()) == -9}
        known = {text for text in texts - codes if not form.is_missing(text.encode())}
        is_number = options.task == "regression" or options.censored or not is_target
        if is_status := {"0", "2"} <= known <= {"0", "1", "2"} and not is_number:
            codes.add("0")
        said = f"with -9{' or 0' * is_status} as {name!r}: missing, as PLINK has it"
    else:
        return cells
    if n_lost := sum(cell in codes for cell in cells):
        counts = inferred.setdefault("plink", {})
        counts[said] = counts.get(said, 0) + n_lost
    gone, pairs = next(iter(form.missing or ("",))), zip(cells, ids, strict=False)
    return [(f"0:{one}" if alone else gone) if cell in codes else cell for cell, one in pairs]


def _beside(path: Path, suffix: str) -> Path:
    if not (beside := path.with_suffix(suffix)).is_file():
        which = "samples" if "am" in suffix else "variants"
        expected = f"{beside.name} in the same folder, which says what its {which} are"
        raise unfit(path, expected, "none", "Put it there.")
    return beside


def _fields_of(path: Path, names: list[bytes]) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Yield ``names``, or those of the header that PLINK 2 writes, and the fields of each line.

    The length of a line has no bound, as alleles have none.
    """
    needed = _NEEDED.intersection(names)
    is_right = True
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            fields = line.split()
            if line.startswith(b"#"):  # the last of such lines is the header
                names = line.lstrip(b"#").split()
                is_right = needed.issubset(names)
            elif len(fields) == len(names) and is_right:
                yield names, fields
            else:
                found = f"{len(fields)}, or no {_text(b', '.join(sorted(needed)))} in a header"
                raise unfit(f"{path}, line {number}", f"{len(names)} fields", found)


def records_of(path: Path, names: list[bytes]) -> Iterator[dict[bytes, bytes]]:
    """Yield the fields of each line by name."""
    return (dict(zip(*both, strict=True)) for both in _fields_of(path, names))


def _text(cell: bytes) -> str:
    return cell.decode(errors="replace")


def _by_place(one: dict[bytes, bytes]) -> str:
    """Return the name of a variant whose id repeats, or is missing."""
    first = one[b"CHROM"] if one[b"ID"] == b"." else one[b"ID"]
    return _text(b":".join((first, one[b"POS"], one[b"REF"], one[b"ALT"])))


def annotations_of(columns: Mapping[str, list[str]]) -> dict[str, list[str | None]]:
    """Return row annotations, by what they are called, of columns of samples by PLINK's names."""

    def known(name: str, cells: list[str]) -> list[str | None]:
        if name == "SEX":
            return [_SEXES.get(cell) for cell in cells]
        if name == "PHENO1" and set(cells) <= STATUS.keys() | _UNKNOWN:
            return [STATUS.get(cell) for cell in cells]
        unknown = () if name in ("FID", "IID", "PAT", "MAT") else _UNKNOWN - {"0"}
        return [None if cell in unknown else cell for cell in cells]

    found = {name: known(name, cells) for name, cells in columns.items()}
    ids = found.get("IID", [])
    if len(set(ids)) < len(ids) and "FID" in found:
        ids = [f"{one}:{other}" for one, other in zip(found["FID"], ids, strict=True)]
    return {"id": ids} | {CALLED.get(name, name): found[name] for name in found if name != "id"}
