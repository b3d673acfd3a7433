"""How the files of a store come to be where they are read."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol


class Files(Protocol):
    """Has files of a store be on a local disk."""

    def borrowed(self, file: Path) -> AbstractContextManager[None]:
        """Have ``file`` be there while the block lasts, if the store has it."""


class LocalFiles:
    """The files of a store on a local disk: they are there."""

    @contextmanager
    def borrowed(self, file: Path) -> Iterator[None]:
        """Do nothing."""
        yield


LOCAL = LocalFiles()
