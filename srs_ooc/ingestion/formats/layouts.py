"""Layouts of groups that tools write as HDF5, known by what is there, not by a file's name.

They are described at https://www.10xgenomics.com/support (HDF5 feature-barcode matrix format),
https://linnarssonlab.org/loompy/format, https://clue.io/connectopedia/gctx_format and
https://biom-format.org/documentation/format_versions/biom-2.1.html.
"""

from typing import NamedTuple


class Side(NamedTuple):
    """Where a layout says what its samples are, or its features.

    Attributes
    ----------
    place : str
        A group; empty for the root.
    ids, symbols : str
        What in it are their ids, and names that people use, which may repeat: the first that is
        there, separated by spaces.
    more : str or None
        The group within it of which all is known of them; empty for itself, None if there is none.
    """

    place: str
    ids: str
    symbols: str = ""
    more: str | None = None

    def paths(self, names: str) -> list[str]:
        """Return where some of it would be."""
        return [f"{self.place}/{name}".lstrip("/") for name in names.split()]

    @property
    def mark(self) -> str:
        """What is always there: the group, or the first kind of ids."""
        return self.paths(self.ids)[0] if self.more != "" else self.place


class Layout(NamedTuple):
    """How a tool lays out a matrix, and what belongs to it.

    Attributes
    ----------
    name : str
        What such files are called.
    matrix : str
        Regular expression of the path of a matrix, the main one before the first bar. It is empty
        where the root is the matrix, a sparse one; else the root is the file.
    samples, features : Side
        What is known of both.
    sparse : {'', 'csr', 'csc'}
        What a sparse matrix is by its shape in the file.
    by_feature : bool
        Whether the first dimension is that of the features.
    missing : tuple of (float or str)
        What stands for a missing value, in all but ids.
    """

    name: str
    matrix: str
    samples: Side
    features: Side
    sparse: str = ""
    by_feature: bool = True
    missing: tuple[float | str, ...] = ()


_CELLS = Side("col_attrs", "CellID Cell obs_names cell_names", more="")
_GENES = Side("row_attrs", "Accession gene_ids", "Gene var_names gene_names", "")
_PERTURBED, _PROBES = Side("0/META/COL", "id", more=""), Side("0/META/ROW", "id", more="")
_SAMPLES, _OTUS = (Side(one, "ids", more="metadata") for one in ("sample", "observation"))
_V3, _V2 = Side("matrix/features", "id", "name", ""), Side("", "genes", "gene_names")

LAYOUTS = (
    Layout("10x", "matrix", Side("matrix", "barcodes filtered_barcodes"), _V3, "csc"),
    Layout("10x v2", "", Side("", "barcodes"), _V2, "csc"),
    Layout("loom", "matrix|layers/.+", _CELLS, _GENES),
    Layout("GCTX", "0/DATA/0/matrix", _PERTURBED, _PROBES, "", False, (-666, "-666", "-666.0")),
    Layout("BIOM", "observation/matrix", _SAMPLES, _OTUS, "csr"),
)
"""What is known of files that do not say it themselves."""
