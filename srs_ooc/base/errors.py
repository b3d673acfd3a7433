"""Errors a user can cause or meet: each says what was expected, what was found, what to do."""


class SrsOocError(Exception):
    """Base of every error this package raises on purpose; the command line exits with status 2."""


class UsageError(SrsOocError):
    """An option or argument outside its range, or options that do not go together."""


class InputError(SrsOocError):
    """A source table that cannot be ingested as asked.

    Where columns can be no features, ``found`` says so, without what to do.
    """

    found: str | None = None


class StoreError(SrsOocError):
    """A store that is absent, damaged, of another format version, or in the way."""


class RunError(SrsOocError):
    """A run that is absent, damaged, held by another process, or of another identity."""


class BudgetError(SrsOocError):
    """A memory cap that cannot hold the work; ``least_mb`` is the smallest that does, or 0."""

    least_mb = 0


class StoppedError(SrsOocError):
    """The work was asked to stop before it was done; who asked catches it."""


def unfit(
    what: object, expected: object, found: object, remedy: str = "Get the file again."
) -> InputError:
    """Return the error of a source that is not as it should be."""
    return InputError(f"{what}: expected {expected}, found {found}. {remedy}")


def no_features(*said: tuple[str, str]) -> InputError:
    """Return the error of columns that can be no features: what was found, and what to do."""
    error = InputError("\n".join(map(" ".join, said)))
    error.found = "\n".join(found for found, _ in said)
    return error
