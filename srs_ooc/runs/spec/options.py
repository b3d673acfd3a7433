"""Options of a run as they are given."""

from collections.abc import Iterator, Mapping
from typing import Any


class Options(Mapping[str, Any]):
    """Options as given, by name; None, or absent, where not given."""

    def __init__(self, **given: Any) -> None:
        self._given = {name: value for name, value in given.items() if value is not None}

    def __getitem__(self, name: str) -> Any:
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def also(self, **given: Any) -> "Options":
        """Return these and further ones."""
        return Options(**self._given | given)
