"""What the options of every method of weighing regulators answer."""

from dataclasses import dataclass

from srs_ooc.base.options import Params, Whole, option


@dataclass(frozen=True)
class EdgeTable:
    """What a network is made of.

    Attributes
    ----------
    n_rows, n_regulators, n_targets : int
        Rows trained on; features that may regulate; features to explain.
    code_nbytes : int
        Of the store.
    weighted : bool
        Whether rows have weights.
    """

    n_rows: int
    n_regulators: int
    n_targets: int
    code_nbytes: int
    weighted: bool


@dataclass(frozen=True, kw_only=True)
class EdgeParams(Params):
    """How one method weighs the regulators of a target; methods extend this."""

    @property
    def uses_values(self) -> bool:
        """Whether it reads the values of codes."""
        return False

    def n_copied(self, n_regulators: int) -> int:
        """Return how many of a block's columns a tree has a copy of."""
        return 0

    @property
    def is_joint(self) -> bool:
        """Whether all targets are worked on together, not one after the other."""
        return False

    def tiled(self, n_regulators: int) -> bool:
        """Return whether a block of so many regulators is laid out in tiles."""
        return False

    def check_table(self, table: EdgeTable) -> None:
        """Refuse options that do not go together, or with the table.

        Raises
        ------
        UsageError
            Saying which.
        """

    def work_nbytes(self, table: EdgeTable) -> int:
        """Return the bytes of work on one target, besides its block and its response."""
        return 0

    def shared_nbytes(self, table: EdgeTable) -> int:
        """Return the bytes that all targets together keep, where there are any."""
        return 0

    @property
    def shorter(self) -> str:
        """Say which options make it shorter, for where it takes long."""
        return "fewer --trees, fewer --targets"

    def remarks(self, table: EdgeTable) -> tuple[str, ...]:
        """Return sentences worth saying before the work begins."""
        return ()


def trees_option() -> int:
    """Return the field of how many trees there are."""
    field: int = option(
        Whole(1, 1_000_000),
        "Trees grown for each target (genie3), or subspaces drawn, a tree on each (srs).",
        default=1000,
        metavar="N",
    )
    return field
