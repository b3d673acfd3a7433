"""A few things kept while they are used: the one made first makes room for a new one."""

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """Keeps what was made for the last keys; several threads may ask at once.

    Parameters
    ----------
    most : int
        Values that are kept, at most.
    """

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._kept: dict[Key, Value] = {}

    def __len__(self) -> int:
        """Return how many values are kept."""
        return len(self._kept)

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return what was made for a key, or make it now; of two made at once one is kept."""
        found = self._kept.get(key)
        if found is not None:
            return found
        made = make()
        with self._lock:
            kept = self._kept.setdefault(key, made)
            if len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]
        return kept
