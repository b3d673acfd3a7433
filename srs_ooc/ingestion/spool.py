"""Rows to columns on disk: panels of rows are filled in memory and lie column-major in a file.

A panel is (n_features, panel rows) float64 in *stored* order, so a batch of stored features is one
contiguous piece of every panel.
"""

import contextlib
import math
import mmap
import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.files import Closing

ITEMSIZE = 8
_COPY_NBYTES = 2_000_000


def anonymous_array(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return a zeroed float64 array in a mapping of its own, given back to the system when it dies.

    The C library may keep freed memory of its heap, which would count against the cap.
    """
    nbytes = max(math.prod(shape) * ITEMSIZE, 1)
    if hasattr(mmap, "MAP_ANONYMOUS"):  # private: shared memory gets no huge pages
        memory = mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    else:
        memory = mmap.mmap(-1, nbytes)
    if hasattr(mmap, "MADV_HUGEPAGE"):  # filling a panel row by row touches every page of it
        with contextlib.suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    return np.ndarray(shape, np.float64, memory)


class HeldPanel:
    """A table on its way from rows to columns, all of it in memory; a ``StoredColumns`` as well.

    Parameters
    ----------
    n_features, n_rows : int
        Features, in stored order, and rows.

    Attributes
    ----------
    panel : float64 (n_features, n_rows)
        The one panel.
    """

    def __init__(self, n_features: int, n_rows: int) -> None:
        self.n_features, self.n_rows = n_features, n_rows
        self.panel = anonymous_array((n_features, n_rows))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        del self.panel

    def flush(self, n_filled: int) -> None:
        """Do nothing: the panel that is full is the table."""

    def seal(self) -> None:
        """Do nothing: nothing waits to be written."""

    def read(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the values (stop - start, n_rows) of stored features ``start .. stop - 1``."""
        return self.panel[start:stop]


class PanelSpool(Closing):
    """A table on its way from rows to columns; once sealed, a ``StoredColumns``.

    Parameters
    ----------
    path : Path
        Scratch file to create.
    n_features : int
        Features, in stored order.
    n_rows_held : int
        Rows there is memory for: those of one panel, or of two, one of which is written to the
        file while the other is filled.

    Attributes
    ----------
    panel : float64 (n_features, panel_rows)
        The panel being filled.
    """

    def __init__(self, path: Path, n_features: int, n_rows_held: int) -> None:
        self.n_features = n_features
        self.n_rows = 0
        panel_rows = max(1, n_rows_held // 2)
        self.panel = anonymous_array((n_features, panel_rows))
        self._other = anonymous_array((n_features, panel_rows)) if n_rows_held > 1 else None
        self._panel_rows = panel_rows
        self._pool = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None
        self._file = path.open("w+b", buffering=0)

    def flush(self, n_filled: int) -> None:
        """Append ``n_filled`` rows of the panel to the file; ``panel`` is another then."""
        self._wait()
        self._writing = self._pool.submit(self._write, self.panel, n_filled)
        self.n_rows += n_filled
        if self._other is None:
            self._wait()
        else:
            self.panel, self._other = self._other, self.panel

    def _wait(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _write(self, panel: NDArray[np.float64], n_filled: int) -> None:
        step = max(1, _COPY_NBYTES // (n_filled * ITEMSIZE)) if n_filled else self.n_features
        if n_filled == self._panel_rows:
            step = self.n_features
        for start in range(0, self.n_features if n_filled else 0, step):
            piece = panel[start : start + step, :n_filled]
            _write_all(self._file.fileno(), np.ascontiguousarray(piece))

    def seal(self) -> None:
        """End filling and give the memory of the panels back."""
        self._wait()
        self._pool.shutdown()
        self._other = None
        del self.panel

    def read(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the values (stop - start, n_rows) of stored features ``start .. stop - 1``."""
        out = anonymous_array((stop - start, self.n_rows))
        for first in range(0, self.n_rows, self._panel_rows):
            n_rows = min(self._panel_rows, self.n_rows - first)
            self._read_panel(out, first, n_rows, start)
        return out

    def _read_panel(self, out: NDArray[np.float64], first: int, n_rows: int, start: int) -> None:
        step = max(1, _COPY_NBYTES // (n_rows * ITEMSIZE))
        for row in range(0, len(out), step):
            part = out[row : row + step, first : first + n_rows]
            offset = (first * self.n_features + (start + row) * n_rows) * ITEMSIZE
            if part.flags.c_contiguous:
                _read_all(self._file.fileno(), part, offset)
            else:
                piece = np.empty(part.shape)
                _read_all(self._file.fileno(), piece, offset)
                part[...] = piece

    def close(self) -> None:
        """Close and delete the file."""
        self._pool.shutdown()
        self._file.close()
        Path(self._file.name).unlink(missing_ok=True)


Panels = HeldPanel | PanelSpool


def open_panels(path: Path, n_features: int, n_rows: int, panel_rows: int) -> Panels:
    """Return panels that turn ``n_rows`` rows into columns.

    In memory if ``panel_rows`` is 0; else by a scratch file at ``path``, with memory for so many
    rows.
    """
    if not panel_rows:
        return HeldPanel(n_features, n_rows)
    return PanelSpool(path, n_features, min(panel_rows, n_rows))


def _write_all(handle: int, data: NDArray[np.float64]) -> None:
    view = data.reshape(-1).view(np.uint8).data
    while view.nbytes:
        view = view[os.write(handle, view) :]


def _read_all(handle: int, into: NDArray[np.float64], offset: int) -> None:
    view = into.reshape(-1).view(np.uint8).data
    while view.nbytes:
        n_read = os.preadv(handle, [view], offset)
        if n_read == 0:
            raise OSError(f"the scratch file ended at byte {offset}: something truncated it")
        view, offset = view[n_read:], offset + n_read
