"""BGEN, decoded by the package ``bgen``: dosages of the first allele of each variant, or the last.

The format is described at https://www.chg.ox.ac.uk/~gav/bgen_format, the ``.sample`` file at
https://www.cog-genomics.org/plink/2.0/formats#sample.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from srs_ooc.base.arrays import Reals
from srs_ooc.ingestion import formats
from srs_ooc.ingestion.formats.files import File
from srs_ooc.ingestion.formats.genotypes import CALLED, annotations_of, records_of
from srs_ooc.ingestion.formats.vcf import VariantTable, in_steps

_AGAIN = "Get the file again."
_NAMES = {b"ID_1": b"FID", b"ID_2": b"IID", b"ID": b"IID", b"sex": b"SEX"}
_KINDS, _STATUS = {b"0", b"D", b"B", b"C", b"P"}, {b"0": "control", b"1": "case"}
_FAR = 1e-4  # that probabilities may sum to more or less than 1


class BgenTable(VariantTable):
    """Dosages of the first allele of each variant, which most write for REF; NaN where missing.

    With ``FILE::ref-last`` they are of the last allele, which PLINK writes for REF. All other
    alleles are one. A genotype of one allele counts as two of it; one of more than two is missing.
    Dosages are to 1/16384, as PLINK 2 keeps them.

    Row ids are those of the file. Where a ``.sample`` file lies beside it, row annotations are its
    columns, and ids as of :class:`BedTable`; the only phenotype there is the target.

    Raises
    ------
    InputError
        Also if the ``.sample`` file is of other samples, or neither has ids.
    """

    def __init__(self, file: File) -> None:
        super().__init__(file, "ref-first or ref-last")
        self._is_last = file.inner == "ref-last"
        self.format = f"bgen, dosages of the {'last' if self._is_last else 'first'} allele"
        with self._reading() as reader:
            head, ids = reader.header, list(reader.samples)
            self._n_variants, has_ids = head.nvariants, head.has_sample_ids
        self._n_cells = 0
        self.annotations = self._of_samples(ids, has_ids=has_ids)
        self.count(file, len(ids), "bgen")
        self.work_nbytes += 16 * self._n_cells * len(ids)

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        damage = formats.reading(self._what, "a BGEN file", _AGAIN)
        with damage, self.library.BgenReader(str(self._path)) as reader:
            yield reader

    def _of_samples(self, ids: list[str], *, has_ids: bool) -> Mapping[str, Sequence[str | None]]:
        """Return what is known of the samples."""
        if not (path := self._path.with_suffix(".sample")).is_file():
            if not has_ids:
                raise self.wrong(f"ids of samples, or {path.name}", "none", "Put that beside it.")
            return {"id": ids}
        with path.open("rb") as file:
            names = [_NAMES.get(name, name) for name in file.readline().split()]
        kinds, *rows = [*records_of(path, names)][1:] or [{}]
        remedy = f"Put the {path.name} of these samples beside it."
        if b"IID" not in kinds or not {*kinds.values()} <= _KINDS or len(rows) != len(ids):
            expected = f"in {path.name} names, kinds (0, D, B, C or P) and {len(ids):,} samples"
            raise self.wrong(expected, f"{len(rows):,}, or other kinds", remedy)
        called = {kind: _STATUS if kind == b"B" else {} for kind in _KINDS}
        columns = {
            name.decode(): [called[kind].get(one[name], one[name].decode()) for one in rows]
            for name, kind in kinds.items()
        }
        pairs = zip(ids, columns.get("FID", columns["IID"]), columns["IID"], strict=True)
        if has_ids and any(one not in (fid, iid, f"{fid}_{iid}") for one, fid, iid in pairs):
            raise self.wrong(f"the ids of {path.name}, in its order", "others", remedy)
        if len(found := [name.decode() for name, kind in kinds.items() if kind in b"BP"]) == 1:
            self.default_target = CALLED.get(found[0], found[0])
        return annotations_of(columns)

    def variants(self, n_samples: int) -> Iterator[list[str]]:
        """Yield CHROM, POS, ID, REF and ALT of each variant."""
        n = 0
        with self._reading() as reader:
            for one in reader:
                n += 1
                ref, *others = one.alleles[:: -1 if self._is_last else 1]
                self._n_cells = max(self._n_cells, (len(others) + 1) * (len(others) + 2) // 2)
                yield [one.chrom, str(one.pos), one.rsid or ".", ref, ",".join(others) or "."]
        if n != self._n_variants:
            raise self.wrong(f"the {self._n_variants:,} variants of its header", f"{n:,}", _AGAIN)

    def dosages(self) -> Iterator[Reals]:
        """Yield the dosages of the counted allele of each variant."""
        with self._reading() as reader:
            yield from (self._dosages(one, len(one.alleles)) for one in reader)

    def _dosages(self, one: Any, n_alleles: int) -> Reals:
        """Return the copies of the counted allele, -1 where missing."""
        where, counted = f", {one.chrom}:{one.pos}", n_alleles - 1 if self._is_last else 0
        cells, ploidy, is_phased = one.probabilities, one.ploidy, one.is_phased
        is_known = ~np.isnan(cells[:, 0]) & (ploidy > 0) & (ploidy < 3)
        cells = np.where(np.isnan(cells), 0, cells)
        high, low = np.tril_indices(n_alleles)
        weights = [np.tile(np.arange(n_alleles) == counted, 2)] * 2  # of one allele, and of two
        if not is_phased:
            weights = [weights[0][:n_alleles], (high == counted) * 1 + (low == counted)]
        copies = [cells[:, : len(one)] @ one[: cells.shape[1]] for one in weights]
        found = np.where(ploidy == 1, 2 * copies[0], copies[1])
        total = cells.sum(axis=1) / (np.maximum(ploidy, 1) if is_phased else 1)
        if (cells[is_known] < -_FAR).any() or (abs(total[is_known] - 1) > _FAR).any():
            raise self.wrong("probabilities that sum to 1", "others", _AGAIN, where)
        return np.where(is_known, in_steps(found), -1)
