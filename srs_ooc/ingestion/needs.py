"""The smallest cap for the whole ingest of a table: one number, whichever stage refuses a smaller.

It follows from what the table is (columns, rows, format, compression) and from published
allowances, never from what a process happens to hold, so that a dry run and an ingest name the same
cap, which works when it is given.
"""

from dataclasses import dataclass, replace

from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import BudgetError
from srs_ooc.base.text import MB, ceil_div, megabytes
from srs_ooc.ingestion.contents import StoreForm
from srs_ooc.ingestion.memory import SLACK_NBYTES, largest_stage, own_nbytes
from srs_ooc.ingestion.options import IngestOptions

LOOK_NBYTES = 72 * MB
"""A look that finds out how large a table is may take so much, whatever the cap."""


@dataclass(frozen=True)
class Needs:
    """What an ingest takes.

    Attributes
    ----------
    n_columns, n_rows : int
        Columns of the source, and its rows at most.
    form : StoreForm
        How the store keeps them.
    drops_rows : bool
        Whether rows may be left out for want of a target.
    held : tuple of Lease
        What is held besides from the first stage to the last.
    opening : tuple of Lease
        What opening the table takes, before any stage.
    """

    n_columns: int
    n_rows: int
    form: StoreForm
    drops_rows: bool
    held: tuple[Lease, ...] = ()
    opening: tuple[Lease, ...] = ()

    @classmethod
    def of(
        cls,
        options: IngestOptions,
        n_columns: int,
        n_rows: int,
        held: tuple[Lease, ...] = (),
        opening: tuple[Lease, ...] = (),
    ) -> "Needs":
        """Return what a table of so many columns and rows takes under some options."""
        drops = options.missing_target == "drop" and not options.no_target
        n_columns, n_rows = max(1, n_columns), max(1, n_rows)
        return cls(n_columns, n_rows, options.form(), drops, held, opening)

    def with_rows(self, n_rows: int, *, drops_rows: bool | None = None) -> "Needs":
        """Return what a table of another number of rows takes."""
        drops = self.drops_rows if drops_rows is None else drops_rows
        return replace(self, n_rows=max(1, n_rows), drops_rows=drops)

    @property
    def depends_on_rows(self) -> bool:
        """Whether the smallest cap is another if there are fewer rows than so many."""
        return self.with_rows(1, drops_rows=False).least_mb < self.least_mb

    def spare_nbytes(self, cap_nbytes: int) -> int:
        """Return what a cap leaves, in bytes."""
        return max(0, cap_nbytes - sum(lease.n_bytes for lease in self._leases()))

    def fits(self, cap_nbytes: int) -> bool:
        """Return whether a cap holds it."""
        return cap_nbytes >= self.least_mb * MB

    @property
    def held_nbytes(self) -> int:
        """What the program and the table hold from the first stage to the last, in bytes."""
        return own_nbytes() + sum(lease.n_bytes for lease in self.held)

    @property
    def least_mb(self) -> int:
        """The smallest cap that works, in MB."""
        return ceil_div(sum(lease.n_bytes for lease in self._leases()), MB)

    def _leases(self) -> list[Lease]:
        """Return what is held at once where most is."""
        program = Lease("interpreter and libraries", own_nbytes())
        stage = largest_stage(self.n_columns, self.n_rows, self.form, drops_rows=self.drops_rows)
        room = Lease("working room", SLACK_NBYTES)
        ways = [[program, *self.opening], [program, room, *self.held, Lease(*stage)]]
        return max(ways, key=lambda leases: sum(lease.n_bytes for lease in leases))

    def check(self, cap_nbytes: int, source: object) -> None:
        """Refuse a cap that does not hold it.

        Raises
        ------
        BudgetError
            With all parts, and the smallest cap that works.
        """
        if self.fits(cap_nbytes):
            return
        parts = [f"{lease.purpose} {megabytes(lease.n_bytes):g}" for lease in self._leases()]
        raise BudgetError(
            f"--memory-mb {megabytes(cap_nbytes):g} cannot hold the ingest of {source}, in MB: "
            f"{', '.join(parts)}. The smallest cap that works is --memory-mb {self.least_mb}."
        )
