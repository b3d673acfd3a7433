"""Layouts of groups that tools write as HDF5, known by what is there, not by a file's name.

They are described at https://www.10xgenomics.com/support (HDF5 feature-barcode matrix format),
https://linnarssonlab.org/loompy/format, https://clue.io/connectopedia/gctx_format and
https://biom-format.org/documentation/format_versions/biom-2.1.html.
"""

from typing import NamedTuple


class Side(NamedTuple):
    """Where a layout says what the rows are, or the columns; paths begin at its root.

    Attributes
    ----------
    ids, symbols : tuple of str
        Paths of their ids, and of names that people use, which may repeat; the first that is there.
    group : str
        What else is known of them; empty if nothing is.
    """

    ids: tuple[str, ...]
    symbols: tuple[str, ...] = ()
    group: str = ""


class Layout(NamedTuple):
    """How a tool lays out a matrix, and what belongs to it.

    Attributes
    ----------
    name : str
        What such files are called.
    marks : tuple of str
        Paths by which it is known, from its root: the file, or the matrix itself, which is sparse.
    matrix : str
        Regular expression of the path of a matrix, the main one before the first bar; empty if the
        root is the matrix.
    rows, columns : Side
        What is known of samples, and of features.
    sparse : {'', 'csr', 'csc'}
        What a sparse matrix is by its shape in the file.
    turned : bool
        Whether the first dimension is that of the features.
    missing : tuple of (float or str)
        What stands for a missing value, in all but ids.
    is_escaped : bool
        Whether texts may have ``&#233;`` for a letter.
    """

    name: str
    marks: tuple[str, ...]
    matrix: str
    rows: Side
    columns: Side
    sparse: str = ""
    turned: bool = True
    missing: tuple[float | str, ...] = ()
    is_escaped: bool = False


_CELLS = ("col_attrs/CellID", "col_attrs/Cell", "col_attrs/obs_names", "col_attrs/cell_names")
_GENES = ("row_attrs/Gene", "row_attrs/var_names", "row_attrs/gene_names")
_GCTX = ("0/DATA/0/matrix", "0/META/COL/id", "0/META/ROW/id")
_BIOM = ("observation/matrix", "sample/ids", "observation/ids")

LAYOUTS = (
    Layout(
        "10x",
        ("matrix/barcodes", "matrix/features/id", "matrix/features/name"),
        "matrix",
        Side(("matrix/barcodes",), ("matrix/filtered_barcodes",)),
        Side(("matrix/features/id",), ("matrix/features/name",), "matrix/features"),
        "csc",
    ),
    Layout(
        "10x, version 2",
        ("barcodes", "genes", "gene_names"),
        "",
        Side(("barcodes",)),
        Side(("genes",), ("gene_names",)),
        "csc",
    ),
    Layout(
        "loom",
        ("matrix", "row_attrs", "col_attrs"),
        "matrix|layers/.+",
        Side(_CELLS, (), "col_attrs"),
        Side(("row_attrs/Accession", "row_attrs/gene_ids"), _GENES, "row_attrs"),
        is_escaped=True,
    ),
    Layout(
        "GCTX",
        _GCTX,
        _GCTX[0],
        Side(_GCTX[1:2], (), "0/META/COL"),
        Side(_GCTX[2:], (), "0/META/ROW"),
        turned=False,
        missing=(-666, "-666", "-666.0"),
    ),
    Layout(
        "BIOM",
        _BIOM,
        _BIOM[0],
        Side(_BIOM[1:2], (), "sample/metadata"),
        Side(_BIOM[2:], (), "observation/metadata"),
        "csr",
    ),
)
"""What is known of files that do not say it themselves."""
