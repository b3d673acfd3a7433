"""Texts as bytes one after another, their hashes, and numbers for the distinct ones."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.native import _native

TO_UTF8 = (
    "Convert the file to UTF-8; of Latin-1, as older programs write it: `iconv -f latin1 -t utf-8 "
    "FILE > NEW`."
)
"""What to do with a text that is not UTF-8."""


@dataclass(frozen=True)
class Texts:
    """Some UTF-8 texts, one after another.

    Attributes
    ----------
    blob : bytes
        The texts without separators.
    ends : uint64 (n,)
        Where each text ends in ``blob``.
    hashes : uint64 (n,)
        A hash of each text, equal for equal texts.
    """

    blob: bytes
    ends: NDArray[np.uint64]
    hashes: NDArray[np.uint64]

    def __iter__(self) -> Iterator[bytes]:
        return split_texts(self.blob, self.ends)


class TextCoder:
    """Numbers distinct texts in the order of their first appearance.

    Parameters
    ----------
    max_nbytes : int
        Memory that the distinct texts may take.
    """

    def __init__(self, max_nbytes: int) -> None:
        self._native = _native.TextCoder(max_nbytes)

    def __len__(self) -> int:
        return self._native.size

    @property
    def cost(self) -> int:
        """Memory that the texts count as, in bytes."""
        return text_cost(0) * len(self) + text_cost(self._native.nbytes) - text_cost(0)

    def code(self, blob: bytes, ends: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return the number of each text; of fewer, where memory ended."""
        return np.frombuffer(self._native.code(blob, ends), np.int32)

    def texts(self) -> list[bytes]:
        """Return the distinct texts, by number."""
        blob, ends = self._native.texts()
        return list(split_texts(blob, np.frombuffer(ends, np.uint64)))


def text_cost(nbytes: int) -> int:
    """Return what a distinct text of so many bytes counts as: kept, hashed, and sorted here."""
    return 4 * nbytes + 128


def split_texts(blob: bytes, ends: NDArray[np.uint64]) -> Iterator[bytes]:
    """Yield the texts that lie one after another in ``blob``."""
    start = 0
    for end in ends.tolist():
        yield blob[start:end]
        start = end


def hash_text(text: bytes) -> int:
    """Return the 64-bit hash that :class:`Texts` holds for ``text``."""
    return _native.hash_text(text)
