"""Options of a part, each declared once: range, default, help.

The command line, config files, settling, the comparison on resume, ``status`` and ``plan`` follow
from the declaration. A part's options are the fields of a frozen dataclass under :class:`Params`.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

from srs_ooc.base.errors import UsageError
from srs_ooc.base.shares import DECIMALS, share_text

LARGEST = 2**31 - 1
"""Bound of whole numbers, so that no sum of them overflows in the kernel."""
_KEY = "option"


class Kind(Protocol):
    """What values an option takes."""

    def canonical(self, name: str, value: Any) -> Any:
        """Return the value as the identity of a run keeps it, or raise ``UsageError``."""


@dataclass(frozen=True)
class Whole:
    """A whole number from ``low`` to ``high``; ``why`` says what ``high`` is."""

    low: int = 0
    high: int = LARGEST
    why: str = ""

    def canonical(self, name: str, value: Any) -> int:
        """Return the number."""
        is_flag = isinstance(value, bool)
        if is_flag or not isinstance(value, int) or not self.low <= value <= self.high:
            raise UsageError(
                f"--{_flag(name)}: expected a whole number from {self.low} to {self.high}"
                f"{self.why}, found {str(value)[:40]}."
            )
        return value


@dataclass(frozen=True)
class Share:
    """A decimal from 0 to 1, kept as its canonical text, so that it is exact."""

    def canonical(self, name: str, value: Any) -> str:
        """Return the decimal text: ``0.50`` and ``5e-1`` are both ``0.5``."""
        try:
            return share_text(value)
        except ValueError as error:
            raise UsageError(
                f"--{_flag(name)}: expected a decimal number from 0 to 1 with at most "
                f"{DECIMALS} places, found {str(value)[:40]!r}."
            ) from error


@dataclass(frozen=True)
class Number:
    """A finite number of at least 0, kept as the shortest text that says it."""

    def canonical(self, name: str, value: Any) -> str:
        """Return the text: ``1e-3`` and ``0.0010`` are both ``0.001``."""
        try:
            number = float(value)
        except (ValueError, TypeError, OverflowError):
            number = -1.0
        if not 0 <= number <= LARGEST:
            raise UsageError(
                f"--{_flag(name)}: expected a number from 0 to {LARGEST}, found "
                f"{str(value)[:40]!r}."
            )
        return repr(number)


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...] = ()

    def canonical(self, name: str, value: Any) -> str:
        """Return the word."""
        if not isinstance(value, str) or value not in self.words:
            raise UsageError(
                f"--{_flag(name)}: expected one of {', '.join(self.words)}, found "
                f"{repr(value)[:60]}."
            )
        return str(value)


@dataclass(frozen=True)
class WordOrFile:
    """One of a few words, or a file: the identity then has a digest of what is in it."""

    words: tuple[str, ...] = ()

    def canonical(self, name: str, value: Any) -> str:
        """Return the word, or the digest."""
        return str(value)


@dataclass(frozen=True)
class Flag:
    """Yes or no: ``--name`` or ``--no-name``."""

    def canonical(self, name: str, value: Any) -> bool:
        """Return it."""
        if not isinstance(value, bool | int) or value not in (0, 1):
            raise UsageError(f"--{_flag(name)}: expected True or False, found {repr(value)[:60]}.")
        return bool(value)


@dataclass(frozen=True)
class Text:
    """Text that the part itself looks into."""

    def canonical(self, name: str, value: Any) -> str:
        """Return it as it is."""
        return str(value)


@dataclass(frozen=True)
class Option:
    """The declaration of one option.

    Attributes
    ----------
    kind : Kind
        What values it takes.
    help : str
        One or two sentences.
    default : object
        Where it is not given; None where the part settles it, or where there is no limit.
    default_text : str or None
        What the help says of the default where the value does not speak for itself.
    metavar : str or None
        What the help calls a value.
    flags : tuple of str
        Other spellings on the command line, such as ``--q``.
    former : str
        The name it had before, if any: ledgers keep it, and who still gives it is warned.
    """

    kind: Kind
    help: str
    default: Any = None
    default_text: str | None = None
    metavar: str | None = None
    flags: tuple[str, ...] = ()
    former: str = ""

    def settle(self, name: str, given: Any) -> Any:
        """Return the canonical value of what was given, or the default."""
        return self.default if given is None else self.kind.canonical(name, given)


def option(
    kind: Kind,
    help: str,  # noqa: A002 (the field's word)
    *,
    default: Any = None,
    default_text: str | None = None,
    metavar: str | None = None,
    flags: tuple[str, ...] = (),
    former: str = "",
) -> Any:
    """Return the field of a :class:`Params` that declares an option; see :class:`Option`."""
    declared = Option(kind, help, default, default_text, metavar, flags, former)
    return dataclasses.field(metadata={_KEY: declared})


@dataclass(frozen=True, kw_only=True)
class Params:
    """What of a run's identity one part settles; subclasses declare fields by :func:`option`."""

    @classmethod
    def options(cls) -> dict[str, Option]:
        """Return the declarations, by name."""
        return {field.name: field.metadata[_KEY] for field in dataclasses.fields(cls)}

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Return the options as settled from those given, for the table of a run.

        A subclass whose defaults or ranges depend on the table extends this.

        Parameters
        ----------
        given : mapping
            Values by name; others than this part's are left alone.
        table : srs_ooc.runs.spec.needs.TrainingShape
            What the run is trained on.

        Raises
        ------
        UsageError
            If a value is outside its range.
        """
        return cls(**{name: o.settle(name, given.get(name)) for name, o in cls.options().items()})

    def values(self) -> dict[str, Any]:
        """Return the settled values by name, JSON-ready."""
        return dataclasses.asdict(self)

    def record(self) -> dict[str, Any]:
        """Return the same by the names that ledgers keep: an option's first."""
        options = self.options()
        return {options[name].former or name: value for name, value in self.values().items()}

    @classmethod
    def restored(cls, record: Mapping[str, Any]) -> Self:
        """Return the options of a :meth:`record`; those it did not know yet are the defaults."""
        options = cls.options().items()
        return cls(**{name: record.get(o.former or name, o.default) for name, o in options})


def _flag(name: str) -> str:
    return name.replace("_", "-")
