"""VCF and BCF, decoded by cyvcf2: of each variant how many copies of REF a sample has."""

import ctypes
import gzip
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Indices, Reals
from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import InputError, unfit
from srs_ooc.base.text import MB
from srs_ooc.ingestion import formats
from srs_ooc.ingestion.formats import TextCoder, in_memory
from srs_ooc.ingestion.formats.files import File
from srs_ooc.ingestion.sources import beginnings_of

_BLOCKS = b"\x1f\x8b\x08\x04"
_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
"""The empty block that ends a file of blocks of gzip (BGZF)."""
_FIELDS = {"chromosome": 0, "id": 2, "position": 1, "counted_allele": 3, "other_allele": 4}
"""What is kept of a variant beside its name, and which field of a line that is."""
_STEPS = 1 << 14  # PLINK 2 keeps dosages in such parts of 1
_AGAIN = "Get the file again."


class VariantTable(in_memory.CopiedTable):
    """Dosages of variants that a library reads one after another, from first to last.

    A feature is named by its variant's id; by ``chromosome:position:REF:ALT`` where that is "." or
    repeats. Variants are counted first. The first :meth:`read` writes all to a scratch file.

    Attributes
    ----------
    dtype : dtype
        Of a dosage in the scratch file, where less than 0 is missing.

    Raises
    ------
    InputError
        If the file is damaged, or has no variants or samples.
    StoreError
        If the disk has no room for the scratch file.
    UsageError
        If the library is not installed.
    """

    narrow, cell_nbytes = True, 4
    default_ids = "id"
    dtype: np.dtype[Any] = np.dtype(np.float32)

    def __init__(self, file: File, choices: str) -> None:
        self._path, self._what = file.path, str(file)
        if file.inner not in ("", *choices.split(" or ")):
            raise self.wrong(f"{choices} after ::", "another", "Name one of them, or none.")
        self.library = file.library()

    def count(self, file: File, n_samples: int, library: str) -> None:
        """Count variants, keep their names, and make room for their dosages."""
        self._called = file.scratch_file("variants", 0)
        with self._called.open("w", encoding="utf-8", errors="replace") as called:
            for fields in self.variants(n_samples):
                called.write("\t".join(fields) + "\n")
        which = (_FIELDS["id"],), (0, 1, 3, 4)
        names = self.names = formats.distinct_names(*(partial(self._said, *one) for one in which))
        self.shape = (n_samples, n_variants := len(names))
        if not n_samples * n_variants:
            found = f"{n_variants:,} of {n_samples:,}"
            raise self.wrong("variants of samples", found, "Get a file that has genotypes.")
        self.feature_columns = {
            name: formats.Names(n_variants, partial(self._said, at)) for name, at in _FIELDS.items()
        }
        n_bytes = (250 if len(self.annotations) == 1 else 1000) * n_samples
        of_rows = Lease(f"{library} and the samples", 16 * MB + n_bytes)
        self.opening, self.held = formats.finding_leases(n_variants, of_rows)
        self.work_nbytes = 4 * MB + 250 * n_samples
        n_bytes = n_samples * n_variants * self.dtype.itemsize
        self.make_room(file.scratch_file("genotypes", n_bytes), self.dtype, n_bytes)

    def variants(self, n_samples: int) -> Iterator[list[str]]:
        """Yield CHROM, POS, ID, REF and ALT of each variant."""
        raise NotImplementedError

    def dosages(self) -> Iterator[NDArray[Any]]:
        """Yield the dosages of each variant; less than 0 where missing."""
        raise NotImplementedError

    def wrong(self, expected: str, found: str, remedy: str, where: str = "") -> InputError:
        """Return what says that the file is wrong."""
        return unfit(f"{self._what}{where}", expected, found, remedy)

    def _said(self, *which: int) -> Iterator[str]:
        """Yield some fields of each variant, parted by colons."""
        with self._called.open(encoding="utf-8", newline="\n") as called:
            for fields in (line.rstrip("\n").split("\t") for line in called):
                yield ":".join([fields[i] for i in which])

    def copy(self) -> None:
        """Write the dosages of all variants to the scratch file."""
        n = 0
        with self._copy.open("r+b") as copy:
            for dosages in self.dosages():
                copy.write(dosages.astype(self.dtype).data)
                n += 1
        if n != self.shape[1]:
            raise self.wrong(f"{self.shape[1]:,} variants", f"{n:,}", _AGAIN)

    def read(self, positions: Indices, pool: TextCoder) -> Reals:
        """Return the dosages of variants, each a row of the result."""
        copies = self.copied(positions).astype(np.float32)
        copies[copies < 0] = np.nan
        return copies


def in_steps(dosages: NDArray[Any]) -> NDArray[Any]:
    """Return dosages as PLINK 2 keeps them, in steps of 1/16384."""
    return np.floor(dosages * _STEPS + 0.5) / _STEPS


class VcfTable(VariantTable):
    """Copies of REF in each genotype, as PLINK 2 exports them; NaN if missing.

    All other alleles are one. A genotype of one allele counts as two of it. It is missing if an
    allele is, or if it has more than two. With ``FILE::DS`` it is 2 less ``DS``, of genotypes of
    one allele 2 less twice that, to 1/16384; where ``DS`` is missing it is as ``GT`` says.

    Raises
    ------
    InputError
        Also if it holds no genotypes, or ``DS`` of several alleles.
    """

    def __init__(self, file: File) -> None:
        super().__init__(file, "GT or DS")
        self._field = file.inner or "GT"
        self.dtype = np.dtype(np.float32 if self._field == "DS" else np.int8)
        self.format = f"vcf, dosages of REF by {self._field}"
        if (packing := beginnings_of(self._path)[0]) not in ("", "gz"):
            how = formats.PACKED[packing]
            raise self.wrong("VCF", how, f"Unpack it: `{how} -dc FILE > NEW`.")
        with suppress(AttributeError, OSError):  # what is wrong with a file is said here
            ctypes.CDLL(self.library.cyvcf2.__file__).hts_set_log_level(0)
        # blocks of gzip without the one that ends them: the file may be cut short
        with self._path.open("rb") as packed:
            self._is_packed = (start := packed.read(len(_BLOCKS))).startswith(_BLOCKS[:2])
            packed.seek(-min(len(_END), self._path.stat().st_size), 2)
            if start == _BLOCKS and packed.read() != _END:
                remedy = "Get the file again; if it is whole, `bgzip -dc FILE | bgzip > NEW`."
                raise self.wrong("the block that ends a file of bgzip", "none", remedy)
        self.annotations = {"id": (samples := self._open().samples)}
        self.count(file, len(samples), "cyvcf2")

    def variants(self, n_samples: int) -> Iterator[list[str]]:
        """Yield CHROM, POS, ID, REF and ALT of each variant."""
        damage = formats.reading(self._what, "a VCF file", _AGAIN, (OSError, EOFError, zlib.error))
        opened: Any = gzip.open if self._is_packed else open
        with damage, opened(self._path, "rb") as file:
            if file.peek(4).startswith(b"BCF"):
                for one in self._records([]):
                    alt = ",".join(one.ALT) or "."
                    yield [one.CHROM, str(one.POS), one.ID or ".", one.REF, alt]
                return
            for number, line in enumerate(file, 1):
                n = max(0, line.count(b"\t") - 8)
                if n != n_samples and line[:1] != b"#":  # cyvcf2 overlooks those beyond the samples
                    expected = f"the genotypes of the {n_samples:,} samples of the header"
                    remedy = "Get the file again, or mend its header."
                    raise self.wrong(expected, f"{n:,}", remedy, f", line {number}")
                if line[:1] != b"#":
                    yield [cell.decode(errors="replace") for cell in line.split(b"\t", 5)[:5]]

    def _open(self, samples: list[str] | None = None) -> Any:
        try:
            return self.library.VCF(str(self._path), strict_gt=True, samples=samples)
        except Exception as error:  # of which it raises several
            raise self.wrong("a VCF or BCF file", "a header that is none", _AGAIN) from error

    def _records(self, samples: list[str] | None = None) -> Iterator[Any]:
        """Yield all variants as cyvcf2 has them, with the genotypes of all or some samples."""
        at = "the header"
        try:
            for record in self._open(samples):
                at = f"{record.CHROM}:{record.POS}"
                yield record
        except Exception as error:
            remedy = "Get the file again; `bcftools view FILE` says more."
            raise self.wrong("a variant", "damage", remedy, f", after {at}") from error

    def dosages(self) -> Iterator[NDArray[Any]]:
        """Yield the copies of REF in each variant."""
        is_found = False
        for record in self._records():
            fields = {self._field, "GT"}.intersection(record.FORMAT or ())
            is_found |= bool(fields)
            copies, is_single = self._genotypes(record, "GT" in fields)
            yield self._dosages(record, copies, is_single) if "DS" in fields else copies
        if not is_found:
            raise self.wrong(self._field, "none", "Of dosages alone, name FILE::DS.")

    def _genotypes(self, record: Any, is_given: bool) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the copies of REF of each sample, -1 where missing, and who has one allele."""
        if not is_given:
            return np.full(self.shape[0], -1), np.zeros(self.shape[0], np.bool_)
        alleles = np.ascontiguousarray(record.genotype.array()[:, :-1].T)
        if (most := alleles.max()) > (n_others := len(record.ALT)):
            where = f", {record.CHROM}:{record.POS}"
            raise self.wrong(f"alleles 0 to {n_others}", f"{most}", "Mend the genotype.", where)
        n_alleles = (alleles > -2).sum(axis=0, dtype=np.int8)  # -2 stands where there is none
        copies = (alleles == 0).sum(axis=0, dtype=np.int8) * (3 - n_alleles)
        copies[(alleles == -1).any(axis=0) | (n_alleles < 1) | (n_alleles > 2)] = -1
        return copies, n_alleles == 1

    def _dosages(self, record: Any, copies: NDArray[Any], is_single: NDArray[Any]) -> Reals:
        """Return 2 less ``DS``, or ``copies`` where that is missing."""
        given, where = record.format("DS"), f", {record.CHROM}:{record.POS}"
        if len(record.ALT) > 1 or given.dtype.kind != "f" or given.shape[1] > 1:
            remedy = "Leave variants of several ALT out, `bcftools view -M 2 FILE`, or read GT."
            raise self.wrong("as DS a number of one ALT", "others", remedy, where)
        with np.errstate(invalid="ignore"):  # what is missing is a NaN that signals
            dosages = given[:, 0] * np.where(is_single, 2.0, 1.0)
        if (wrong := (dosages < 0) | (dosages > 2)).any():
            expected = "DS from 0 to 2, or to 1 where GT is of one allele"
            raise self.wrong(expected, f"{given[wrong][0, 0]:g}", "Mend it, or read GT.", where)
        return np.where(np.isnan(dosages), copies, 2 - in_steps(dosages))
