"""Genotypes of PLINK 1: a ``.bed`` file, read variant by variant, with its ``.bim`` and ``.fam``.

The formats are described at https://www.cog-genomics.org/plink/1.9/formats.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import InputError
from srs_ooc.base.text import MB
from srs_ooc.ingestion.formats import Table, TextCoder, distinct_names
from srs_ooc.ingestion.formats.in_memory import item_blocks
from srs_ooc.store.bed import BedFile

_FIELDS = 6
_SEXES = {b"1": "male", b"2": "female"}
_STATUS = {b"1": "control", b"2": "case"}
_UNKNOWN = {b"0", b"-9", b"NA", b"na", b"nan"}


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

    def __init__(self, path: Path) -> None:
        variants, samples = _beside(path, ".bim"), _beside(path, ".fam")
        self.annotations = _annotations(samples)
        self.default_ids = "id"
        self.default_target = None
        if any(cell is not None for cell in self.annotations["phenotype"]):
            self.default_target = "phenotype"
        self.names: Collection[str] = distinct_names(
            lambda: (_text(own) for _, own, *_ in _fields_of(variants)),
            lambda: map(_by_place, _fields_of(variants)),
        )
        n_samples, n_variants = len(self.annotations["id"]), len(self.names)
        self.shape: tuple[int, int] = (n_samples, n_variants)
        self.bed = BedFile(path, n_samples, n_variants)
        self.bed.check(samples.name, variants.name)
        of_rows = Lease(f"what {samples.name} says of rows", 1000 * n_samples)
        self.held = (of_rows, Lease("which variant ids repeat", 40 * n_variants))

    def read(self, positions: NDArray[np.intp], pool: TextCoder) -> NDArray[np.float64]:
        """Return the dosages of variants, each a row of the result."""
        return self.bed.dosages(self.bed.lines(positions)).astype(np.float64)

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the dosages of a variant in blocks."""
        return item_blocks(self.read(np.array([position]), TextCoder(0))[0])


def _beside(path: Path, suffix: str) -> Path:
    beside = path.with_suffix(suffix)
    if not beside.is_file():
        raise InputError(
            f"{path}: expected {beside.name} in the same folder, which says what its "
            f"{'variants' if suffix == '.bim' else 'samples'} are, found none. Put it there."
        )
    return beside


def _fields_of(path: Path) -> Iterator[list[bytes]]:
    """Yield the six fields of each line; its length has no bound, as alleles have none."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            fields = line.split()
            if len(fields) != _FIELDS:
                raise InputError(
                    f"{path}, line {number}: expected {_FIELDS} fields, found {len(fields)}. Get "
                    "the file again."
                )
            yield fields


def _text(cell: bytes) -> str:
    return cell.decode(errors="replace")


def _by_place(fields: list[bytes]) -> str:
    """Return the name of a variant whose id repeats, or is missing."""
    chromosome, own, _, position, a1, a2 = fields
    return _text(b":".join((chromosome if own == b"." else own, position, a2, a1)))


def _annotations(path: Path) -> dict[str, list[str | None]]:
    """Return what a ``.fam`` file says of samples."""
    found = [*zip(*_fields_of(path), strict=True)] or [()] * _FIELDS
    family, within, father, mother, sex, phenotype = found

    def texts(cells: tuple[bytes, ...], unknown: Collection[bytes]) -> list[str | None]:
        return [None if cell in unknown else _text(cell) for cell in cells]

    ids = texts(within, ())
    if len(set(ids)) < len(ids):
        ids = [f"{one.decode()}:{other}" for one, other in zip(family, ids, strict=True)]
    is_status = set(phenotype) <= _STATUS.keys() | _UNKNOWN
    status = [_STATUS.get(cell) for cell in phenotype]
    return {
        "id": ids,
        "FID": texts(family, ()),
        "IID": texts(within, ()),
        "father": texts(father, (b"0",)),
        "mother": texts(mother, (b"0",)),
        "sex": [_SEXES.get(cell) for cell in sex],
        "phenotype": status if is_status else texts(phenotype, _UNKNOWN - {b"0"}),
    }
