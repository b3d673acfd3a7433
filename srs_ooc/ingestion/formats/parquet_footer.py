"""The size of a Parquet file, from the beginning of its footer, before PyArrow decodes all of it.

The footer is a structure in Thrift's compact protocol: a version, the list of the columns' schemas,
the number of rows, and then the bulk, which is not looked at.
"""

from pathlib import Path

_END_NBYTES = 8  # the footer's length, and the magic bytes
_SCHEMA, _N_ROWS = 2, 3
_BOOLEANS, _BYTE, _DOUBLE, _BINARY, _STRUCT = (1, 2), 3, 7, 8, 12
_VARINTS, _LISTS = (4, 5, 6), (9, 10)
_DEEPEST = 8


def footer_nbytes(path: Path) -> int:
    """Return the length of the footer as the file says, at most that of the file."""
    nbytes = path.stat().st_size
    with path.open("rb") as file:
        file.seek(-min(_END_NBYTES, nbytes), 2)
        return min(int.from_bytes(file.read(4), "little"), nbytes)


def size_of(path: Path) -> tuple[int, int] | None:
    """Return the rows and columns of a file; None if its footer cannot be read so."""
    nbytes = footer_nbytes(path)
    with path.open("rb") as file:
        file.seek(-min(nbytes + _END_NBYTES, path.stat().st_size), 2)
        data = file.read(nbytes)
    try:
        return _Footer(data).size()
    except (IndexError, ValueError):
        return None  # PyArrow says what is wrong with it


class _Footer:
    """Reads the fields of the outermost structure up to the number of rows."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def size(self) -> tuple[int, int]:
        number, n_columns = 0, 0
        while True:
            number, kind = self._field(number)
            if number == _SCHEMA and kind in _LISTS:
                begin = self._at
                n_columns = self._list_header()[0] - 1  # but for the root
                self._at = begin
            if number == _N_ROWS and kind in _VARINTS:
                n_rows = self._varint() >> 1
                return n_rows, n_columns
            self._skip(kind, 0)

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("no number of 64 bits")

    def _field(self, before: int) -> tuple[int, int]:
        head = self._byte()
        if not head:
            raise ValueError("the structure ends before the number of rows")
        number = before + (head >> 4) if head >> 4 else self._varint() >> 1
        return number, head & 0x0F

    def _list_header(self) -> tuple[int, int]:
        head = self._byte()
        n_items = head >> 4
        return (self._varint() if n_items == 0x0F else n_items), head & 0x0F

    def _skip(self, kind: int, depth: int) -> None:
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        if kind in _BOOLEANS:
            return
        if kind in _VARINTS:
            self._varint()
        elif kind == _BYTE:
            self._at += 1
        elif kind == _DOUBLE:
            self._at += 8
        elif kind == _BINARY:
            nbytes = self._varint()
            self._at += nbytes
        elif kind in _LISTS:
            n_items, of = self._list_header()
            for _ in range(n_items):
                # a boolean of a list takes a byte, one of a structure none
                self._skip(_BYTE if of in _BOOLEANS else of, depth + 1)
        elif kind == _STRUCT:
            self._skip_fields(depth)
        else:
            raise ValueError("a kind that is not used here")

    def _skip_fields(self, depth: int) -> None:
        while head := self._byte():
            if not head >> 4:
                self._varint()
            self._skip(head & 0x0F, depth + 1)
