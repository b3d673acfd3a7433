"""``srs-ooc synth``: tables with a known truth, to try and to measure methods on."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from srs_ooc.errors import UsageError

if TYPE_CHECKING:
    from srs_ooc.synth.problem import Problem

_OUT = click.argument("out", type=click.Path(path_type=Path))
_FEATURES = click.option(
    "--features", "n_features", type=int, required=True, metavar="P", help="Features."
)
_RELEVANT = click.option(
    "--relevant", "n_relevant", type=int, required=True, metavar="R", help="Relevant features."
)
_SEED = click.option("--seed", type=int, default=0, show_default=True, metavar="S", help="Seed.")


@click.group("synth")
def synth_command() -> None:
    """Write a table whose relevant features are known."""


@synth_command.command("madelon")
@_OUT
@click.option("--rows", "n_rows", type=int, required=True, metavar="N", help="Rows.")
@_FEATURES
@_RELEVANT
@_SEED
def madelon_command(out: Path, n_rows: int, n_features: int, n_relevant: int, seed: int) -> None:
    """Two classes told apart only by how several features go together.

    A quarter of the R relevant features are informative, the others are linear combinations of
    them; the rest of the P features are noise. OUT ends in .csv or .csv.gz (a table with the class
    in the last column, `target`) or in .zarr (a store); the truth is written to OUT.truth.json.
    """
    from srs_ooc.synth.madelon import Madelon

    _write(Madelon(n_rows, n_features, n_relevant, seed), n_relevant, out)


_HELP = {
    "chain": "Target = parity of the first i of R bits, i random: bit i is seen beside those "
    "before it.",
    "clique": "Target = parity of R bits: each is seen only beside all the others.",
    "marginal": "Target = one of R bits, a random one: each is seen by itself.",
}
_EPILOG = (
    "With --exact every cell of the joint distribution comes N / cells times (cells: R 2^R; clique "
    "2^R), so that trees see infinite samples; irrelevant features then depend on the repetition "
    "alone and decrease no impurity anywhere (constant where there is one repetition, the default)."
)


def _scenario_command(name: str) -> Callable[..., None]:
    def command(
        out: Path, n_rows: int | None, n_features: int, n_relevant: int, seed: int, *, exact: bool
    ) -> None:
        from srs_ooc.synth.scenarios import MAX_RELEVANT, Chain, Clique, Marginal, Scenario

        kinds: dict[str, type[Scenario]] = {"chain": Chain, "clique": Clique, "marginal": Marginal}
        kind = kinds[name]
        if n_rows is None:
            if not exact:
                raise UsageError("--rows: expected a number of rows (or --exact), found none.")
            n_rows = max(2, kind.n_cells(min(max(n_relevant, 1), MAX_RELEVANT)))
        _write(kind(n_rows, n_features, n_relevant, seed, exact), n_relevant, out)

    return command


for _name, _help in _HELP.items():
    _command: Any = _scenario_command(_name)
    for _decorate in (
        _SEED,
        click.option("--exact", is_flag=True, help="Every cell in proportion; see below."),
        click.option("--rows", "n_rows", type=int, metavar="N",
                     help="Rows.  [default with --exact: one of each cell]"),
        _RELEVANT,
        _FEATURES,
        _OUT,
    ):  # fmt: skip
        _command = _decorate(_command)
    synth_command.command(_name, help=_help, epilog=_EPILOG)(_command)


def _write(problem: "Problem", n_relevant: int, out: Path) -> None:
    from srs_ooc.synth.output import truth_path, write_table

    write_table(problem, out)
    click.echo(
        f"{out}: {problem.n_rows:,} rows, {problem.n_features:,} features, {n_relevant} relevant. "
        f"Truth: {truth_path(out)}"
    )
