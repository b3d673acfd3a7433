"""Options of a part, each declared once: range, default, help.

The command line, config files, settling, the comparison on resume, ``status`` and ``plan`` follow
from the declaration. A part's options are the fields of a subclass of :class:`Params`.
Beside them stand shares (alpha, beta), what a caller from Python gives, how options are spelt in
messages, and parts that other packages bring.
"""

import csv
import dataclasses
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cache, partial
from importlib import import_module
from operator import index
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import Any, Self, dataclass_transform

from srs_ooc.base.errors import SrsOocError, UsageError
from srs_ooc.base.frames import check_kind
from srs_ooc.base.text import number_of
from srs_ooc.base.urls import Place, Url, place_of

# Shares of a whole (alpha, beta), exact: a share is what its decimal text says.
#
# As a float 0.29 times 100 is 28.999999999999996, so floor(alpha q) taken on floats loses a place.

DECIMALS = 9
"""Places a share may have, so that counts times its denominator fit 64 bits."""
_DECIMAL = re.compile(r"-?[0-9]{0,20}\.?[0-9]{0,20}([eE][+-]?[0-9]{1,2})?", re.ASCII)

ShareLike = str | int | float | Decimal | Fraction


def exact_share(share: ShareLike) -> Fraction:
    """Return the exact number that the decimal text of ``share`` says.

    A float stands for its shortest decimal text; a fraction for itself.

    Raises
    ------
    ValueError
        If it is no number, or outside [0, 1].
    """
    try:
        exact = share if isinstance(share, Fraction) else Fraction(Decimal(str(share)))
    except (InvalidOperation, ValueError, OverflowError) as error:
        raise ValueError(f"expected a number from 0 to 1, found {share!r}") from error
    if not 0 <= exact <= 1:
        raise ValueError(f"expected a number from 0 to 1, found {share}")
    return exact


def floor_share(share: ShareLike, whole: int) -> int:
    """Return floor(share * whole), exactly."""
    return int(exact_share(share) * whole)


def share_text(share: ShareLike) -> str:
    """Return the canonical decimal text of a share: ``0.50`` and ``5e-1`` are both ``0.5``.

    Raises
    ------
    ValueError
        If it is no plain decimal number, outside [0, 1], or of more than nine places.
    """
    text = str(share)
    exact = exact_share(text) if _DECIMAL.fullmatch(text) else None
    if exact is None or (exact * 10**DECIMALS).denominator != 1:
        raise ValueError(f"expected a decimal from 0 to 1 with at most {DECIMALS} places")
    value = Decimal(text)
    return f"{value.normalize():f}" if value else "0"


LARGEST = 2**31 - 1
"""Bound of whole numbers, so that no sum of them overflows in the kernel."""
_KEY = "option"


class Kind:
    """What values an option takes; as it stands here a text, and nothing else.

    Attributes
    ----------
    expected : str
        What a value has to be, for messages and for help.
    """

    expected: str = "text"

    def taken(self, value: Any) -> Any:
        """Return a value as the identity of a run keeps it; ``ValueError`` if it is none."""
        if not isinstance(value, str):
            raise ValueError(value)  # noqa: TRY004 (whatever is wrong with a value)
        return value

    def of_text(self, text: str) -> Any:
        """Return what a text of the command line says, or the text, which is refused then."""
        return text

    def canonical(self, name: str, value: Any) -> Any:
        """Return the value as the identity of a run keeps it, or raise ``UsageError``."""
        try:
            return self.taken(value)
        except (TypeError, ValueError) as error:
            found = f"{value!r:.60}"
            raise UsageError(
                f"{flag_of(name)}: expected {self.expected}, found {found}."
            ) from error


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number from ``low`` to ``high``; ``why`` says what ``high`` is."""

    low: int = 0
    high: int = LARGEST
    why: str = ""

    @property
    def expected(self) -> str:  # type: ignore[override]
        """The numbers."""
        return f"a whole number from {self.low} to {self.high}{self.why}"

    def taken(self, value: Any) -> int:
        """Return the number."""
        if isinstance(value, bool) or not self.low <= (number := index(value)) <= self.high:
            raise ValueError(value)
        return number

    def of_text(self, text: str) -> Any:
        """Return the number of a text as people write it: 10000, 10_000, 1e4."""
        try:
            number = Decimal(text)
        except InvalidOperation:
            return text
        is_whole = number.is_finite() and abs(number) < 2**64 and number == int(number)
        return int(number) if is_whole else text


@dataclass(frozen=True)
class Share(Kind):
    """A decimal from 0 to 1, kept as its canonical text, so that it is exact."""

    expected = f"a decimal number from 0 to 1 with at most {DECIMALS} places"

    def taken(self, value: Any) -> str:
        """Return the decimal text: ``0.50`` and ``5e-1`` are both ``0.5``."""
        return share_text(value)


@dataclass(frozen=True)
class Number(Kind):
    """A finite number of at least 0, kept as the shortest text that says it."""

    expected = f"a number from 0 to {LARGEST}"

    def taken(self, value: Any) -> str:
        """Return the text: ``1e-3`` and ``0.0010`` are both ``0.001``."""
        number = math.nan if isinstance(value, bool) else number_of(value)
        if not 0 <= number <= LARGEST:
            raise ValueError(value)
        return repr(number)


@dataclass(frozen=True)
class Choice(Kind):
    """One of a few words."""

    words: tuple[str, ...] = ()

    @property
    def expected(self) -> str:  # type: ignore[override]
        """The words."""
        return f"one of {', '.join(self.words)}"

    def taken(self, value: Any) -> str:
        """Return the word."""
        return self.words[self.words.index(value)]


@dataclass(frozen=True)
class WordOrFile(Kind):
    """One of a few words, or a file: the identity then has a digest of what is in it."""

    words: tuple[str, ...] = ()
    expected = "a word, or the name of a file"

    def taken(self, value: Any) -> str:
        """Return the word, or the digest."""
        return str(value)


class Flag(Kind):
    """Yes or no."""

    expected = "yes or no"

    def taken(self, value: Any) -> bool:
        """Return it."""
        if type(value).__name__ not in ("bool", "bool_", "int") or value not in (0, 1):
            raise ValueError(value)
        return bool(value)

    def of_text(self, text: str) -> Any:
        """Return yes or no."""
        return {"yes": True, "true": True, "no": False, "false": False}.get(text.lower(), text)


@dataclass(frozen=True)
class Text(Kind):
    """Text, or a number; the part itself looks into it.

    ``read(name, value)``, if there is one, returns it as it is kept.
    """

    read: Callable[[str, Any], str] | None = None
    expected = "text or a number"

    def taken(self, value: Any) -> str:
        """Return the text."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError(value)  # noqa: TRY004 (whatever is wrong with a value)
        return str(value)

    def canonical(self, name: str, value: Any) -> str:
        """Return the text as it is kept, or raise ``UsageError``."""
        read = self.read or super().canonical
        return read(name, value)


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
    """

    kind: Kind
    help: str
    default: Any = None
    default_text: str | None = None
    metavar: str | None = None
    flags: tuple[str, ...] = ()

    def settle(self, name: str, given: Any) -> Any:
        """Return the canonical value of what was given, or the default."""
        return self.default if given is None else self.kind.canonical(name, given)


def option(
    kind: Kind,
    help: str = "",  # noqa: A002 (the field's word)
    *,
    default: Any = None,
    default_text: str | None = None,
    metavar: str | None = None,
    flags: tuple[str, ...] = (),
) -> Any:
    """Return the field of a :class:`Params` that declares an option; see :class:`Option`.

    Its help, where none is given, is its entry among the Attributes of the class' docstring.
    """
    declared = Option(kind, help, default, default_text, metavar, flags)
    return dataclasses.field(metadata={_KEY: declared})


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True, kw_only=True)
class Params:
    """What of a run's identity one part settles; subclasses declare fields by :func:`option`.

    A subclass is a frozen dataclass without saying so; its fields are keywords.
    """

    def __init_subclass__(cls) -> None:
        said = entries_of(cls)
        for name, field in vars(cls).items():
            if isinstance(field, dataclasses.Field) and name in said:
                declared = dataclasses.replace(field.metadata[_KEY], help=said[name])
                field.metadata = MappingProxyType({_KEY: declared})
        dataclass(frozen=True, kw_only=True)(cls)

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
        table : srs_ooc.runs.run_memory.TrainingShape
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

    @classmethod
    def restored(cls, record: Mapping[str, Any]) -> Self:
        """Return the options of a record; those it did not know yet are the defaults."""
        return cls(**{name: record.get(name, o.default) for name, o in cls.options().items()})


_ENTRY = re.compile(r"^    (\w+) : .*\n((?:        .*\n)+)", re.MULTILINE)


def entries_of(documented: type) -> dict[str, str]:
    """Return what the docstring of a class says of its attributes, by name, each on one line.

    Nothing under ``python -OO``, which has no docstrings.
    """
    return {n: " ".join(text.split()) for n, text in _ENTRY.findall(str(documented.__doc__))}


FLAGS = """
    method alpha subspace_size judge seed probe_min_draws probe_min_wins fdr closing adjust pairs
    model max_features splitter bootstrap row_sample class_weight max_depth min_samples_leaf
    trees_per_subspace exclude rows
""".split()  # noqa: SIM905 (a list of words)
"""Options that the command line spells ``--name``; all others of parts are ``--with NAME=VALUE``.
"""


def flag_of(name: str) -> str:
    """Return the name of an option as messages have it: what comes after ``--with``, or a flag."""
    return f"--{name.replace('_', '-')}" if name in FLAGS else name


def line_of(name: str, value: Any) -> str:
    """Return how the command line gives an option a value."""
    if name not in FLAGS:
        return f"--with {quote(f'{name}={value}')}"
    flag = flag_of(name)
    if isinstance(value, bool):
        return flag if value else f"--no-{flag[2:]}"
    return f"{flag} {quote(str(value))}"


# What a caller from Python gives, checked before it is used.


def path_given(value: Any, name: str) -> Path:
    """Return a path.

    Raises
    ------
    UsageError
        If it is none, or one that no file can have.
    """
    try:
        if isinstance(value, str | os.PathLike) and "\0" not in (path := os.fspath(value)):
            os.fsencode(path)
            return Path(path)
    except (TypeError, ValueError):
        pass  # a path of bytes, or a text that no file system can hold
    raise unexpected(name, "a path as text or pathlib.Path", value)


def place_given(value: Any, name: str) -> Place:
    """Return a path, or the URL that a text stands for.

    Raises
    ------
    UsageError
        If it is neither.
    """
    return value if isinstance(value, Url) else place_of(path_given(value, name))


def given_as(kind: Kind, value: Any, name: str) -> Any:
    """Return a value as ``kind`` takes it.

    Raises
    ------
    UsageError
        If it takes none such.
    """
    try:
        return kind.taken(value)
    except (TypeError, ValueError) as error:
        raise unexpected(name, kind.expected, value) from error


def whole_given(value: Any, name: str, low: int = 1) -> int | None:
    """Return a whole number from ``low`` on, as :func:`given_as`; None where none is given."""
    return None if value is None else given_as(Whole(low), value, name)


def megabytes_given(value: Any, name: str = "--memory-mb") -> float:
    """Return a finite number of megabytes above 0.

    Raises
    ------
    UsageError
        If it is none.
    """
    number = math.nan if isinstance(value, str | bytes | bool) else number_of(value)
    if not 0 < number <= LARGEST:
        raise unexpected(name, f"a number of megabytes up to {LARGEST}", value)
    return number


def flag_given(value: Any, name: str) -> bool:
    """Return yes or no, as :func:`given_as`."""
    return bool(given_as(Flag(), value, name))


_OF_ARGUMENTS: dict[str, Callable[[Any, str], Any]] = {
    "run": path_given,
    "store": place_given,
    "path": place_given,
    "kind": lambda value, _: check_kind(value),
    "iterations": partial(whole_given, low=0),
    "halves": partial(whole_given, low=0),
    "folds": partial(whole_given, low=2),
    "save_trees": lambda value, name: value if value is None else flag_given(value, name),
    "out": lambda value, name: value if value is None else path_given(value, name),
    "held_out_rows": lambda value, name: value if value is None else path_given(value, name),
    **dict.fromkeys(("fresh", "accept_loss", "exclude_missing"), flag_given),
    **dict.fromkeys(("n_rows", "n_features", "n_classes", "max_features"), whole_given),
    **dict.fromkeys(("top", "repeats", "memory_mb", "threads"), whole_given),
}
"""By the name of an argument, what checks it."""


def checked(**given: Any) -> list[Any]:
    """Return the arguments of a call from Python in their order, each checked by its name.

    Raises
    ------
    UsageError
        If one is not what it has to be.
    """
    return [_OF_ARGUMENTS[name](value, name) for name, value in given.items()]


def unexpected(name: str, expected: str, value: Any) -> UsageError:
    """Return the error that says what was expected of ``name``, and what was found."""
    return UsageError(
        f"{name}: expected {expected}, found {ascii(value)[:60]} ({type(value).__name__}). "
        "Give one, or leave it out where it may be."
    )


def check_known(given: Mapping[str, Any], known: Mapping[str, Any], of: str) -> None:
    """Check that all options given are ``known`` ones ``of`` something.

    Raises
    ------
    UsageError
        If one is not.
    """
    for name in given:
        if name not in known:
            raise UsageError(
                f"{name}: expected an option of {of} ({', '.join(known)}), found another name."
            )


# Options as Python spells them, in messages that the command line shares.

_COMMAND = re.compile("(`[^`]*`)")
_SCRATCH = re.compile(r"\S*/srs-ooc-\w{8}/(\w+)(\.zarr\b)?")
"""A file that an argument was written to: called as the argument is."""
_TEXT = r"--(?:comment|decimal|id|missing(?!-)|no-header|orient|samples?|separator)\b"
_INSTEAD = " (Options of `srs-ooc ingest` alone: in Python read the table so with pandas.)"
_OTHERS = {"kind": "kinds", "dask": "client", "no_values": "keep_values=False",
           "target_file": "target=numpy.load(FILE)"}  # fmt: skip
"""Options of text tables, which Python does not have, what to do instead, and other names."""
_FLAG = re.compile(
    rf"(?<![\w-])(?!{_TEXT})--([a-z][a-z-]*[a-z]|[a-z])"
    r"(?: (?:(?=[0-9])|(regression|classification|uint16|drop)\b))?"
)


def spelled(message: str) -> str:
    """Return a message with options spelt as keyword arguments, but for commands it quotes."""
    message = re.sub(r"--kind (\S+)=(\w+)", r"kinds={'\1': '\2'}", message)
    parts = _COMMAND.split(_SCRATCH.sub(r"\1", message))
    text = "".join(part if part.startswith("`") else _FLAG.sub(_keyword, part) for part in parts)
    return text + _INSTEAD * (_INSTEAD not in text and bool(re.search(_TEXT, " ".join(parts[::2]))))


def _keyword(match: "re.Match[str]") -> str:
    value = f'="{match[2]}"' if match[2] else "=" * match[0].endswith(" ")
    return _OTHERS.get(name := match[1].replace("-", "_"), name) + value


@contextmanager
def python_spelling() -> Iterator[None]:
    """Spell options as keyword arguments in the message of an error that the block raises."""
    try:
        yield
    except SrsOocError as error:
        if len(error.args) == 1:
            error.args = (spelled(str(error.args[0])),)
        raise


# Parts from other packages, which say by entry points where they are.


@cache
def places_of(group: str) -> dict[str, str]:
    """Return where the parts of a group are, ``module:attribute`` by name; nothing is imported."""
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=group)}


def part_at(place: str, what: str) -> Any:
    """Import the part at ``module:attribute``; ``what`` names it in messages.

    Raises
    ------
    UsageError
        If it cannot be imported.
    """
    module, _, attribute = place.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"{what}: expected a part at {place}, could not import it: {error}. Install the "
            "package that provides it again."
        ) from error


def names_in(text: str) -> tuple[str, ...]:
    """Return names separated by commas; one that holds a comma is quoted, as in a CSV file.

    Raises
    ------
    UsageError
        If one is empty.
    """
    names = tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []))
    if not names or "" in names:
        raise UsageError(f"expected names separated by commas, found {text!r}. Name each column.")
    return names
