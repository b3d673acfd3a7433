"""What is closed at the end of a ``with`` block."""

from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """Something that holds files or threads; a ``with`` block closes it, come what may."""

    @abstractmethod
    def close(self) -> None:
        """Give up what is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
