"""``srs-ooc synth``: tables with a known truth, to try and to measure methods on."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from srs_ooc.base.errors import UsageError
from srs_ooc.cli.output import say

if TYPE_CHECKING:
    from srs_ooc.synthetic.problem_tables import Problem

_OUT = click.argument("out", type=click.Path(path_type=Path))
_FEATURES = click.option(
    "--features", "n_features", type=int, required=True, metavar="P", help="Features."
)
_RELEVANT = click.option(
    "--relevant", "n_relevant", type=int, required=True, metavar="R", help="Relevant features."
)
_ROWS = click.option("--rows", "n_rows", type=int, required=True, metavar="N", help="Rows.")
_SEED = click.option("--seed", type=int, default=0, show_default=True, metavar="S", help="Seed.")


@click.group("synth")
def synth_command() -> None:
    """Write a table whose relevant features are known."""


@synth_command.command("madelon")
@_OUT
@_ROWS
@_FEATURES
@_RELEVANT
@_SEED
def madelon_command(out: Path, n_rows: int, n_features: int, n_relevant: int, seed: int) -> None:
    """Two classes that differ only in how several features go together.

    A quarter of the R relevant features are informative, the others are linear combinations of
    them; the rest of the P features are noise. OUT ends in .csv or .csv.gz (a table with the class
    in the last column, `target`) or in .zarr (a store); the truth is written to OUT.truth.json.
    """
    from srs_ooc.synthetic.problems import Madelon

    _write(Madelon(n_rows, n_features, n_relevant, seed), out)


@synth_command.command("blocks")
@_OUT
@_ROWS
@_FEATURES
@click.option("--relevant", "n_relevant", type=int, required=True, metavar="R",
              help="Blocks with a cause.")  # fmt: skip
@click.option("--block-size", type=int, default=20, show_default=True, metavar="B",
              help="Features of a block.")  # fmt: skip
@click.option("--correlation", type=float, default=0.9, show_default=True, metavar="RHO",
              help="Of neighbours in a block.")  # fmt: skip
@_SEED
def blocks_command(
    out: Path,
    n_rows: int,
    n_features: int,
    n_relevant: int,
    block_size: int,
    correlation: float,
    seed: int,
) -> None:
    """Features in correlated blocks, one cause in each of R of them.

    The class is the sign of a sum of the causes and noise. The other members of a block with a
    cause stand in for it; the truth lists those blocks.
    """
    from srs_ooc.synthetic.problems import Blocks

    _write(Blocks(n_rows, n_features, n_relevant, seed, block_size, correlation), out)


@synth_command.command("linear")
@_OUT
@_ROWS
@_FEATURES
@_RELEVANT
@_SEED
def linear_command(out: Path, n_rows: int, n_features: int, n_relevant: int, seed: int) -> None:
    """Class = sign of a sum of R features and noise, all with heavy tails (half a t with 2 df)."""
    from srs_ooc.synthetic.problems import Linear

    _write(Linear(n_rows, n_features, n_relevant, seed), out)


@synth_command.command("friedman")
@_OUT
@_ROWS
@_FEATURES
@_SEED
def friedman_command(out: Path, n_rows: int, n_features: int, seed: int) -> None:
    """Make a regression (Friedman 1) on five of P uniform features, two of which interact.

    target = 10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5 + standard normal noise.
    """
    from srs_ooc.synthetic.problems import Friedman

    _write(Friedman(n_rows, n_features, seed), out)


@synth_command.command("shift")
@_OUT
@_ROWS
@_FEATURES
@_RELEVANT
@click.option("--size", type=float, default=1.5, show_default=True, metavar="SD",
              help="Difference of the means, in standard deviations.")  # fmt: skip
@_SEED
def shift_command(
    out: Path, n_rows: int, n_features: int, n_relevant: int, size: float, seed: int
) -> None:
    """R normal features have another mean in one of two equal classes, up or down."""
    from srs_ooc.synthetic.problems import Shift

    _write(Shift(n_rows, n_features, n_relevant, seed, size), out)


@synth_command.command("imbalance")
@_OUT
@_ROWS
@_FEATURES
@_RELEVANT
@click.option("--size", type=float, default=0.8, show_default=True, metavar="SD",
              help="Difference of the means, in standard deviations.")  # fmt: skip
@click.option("--share", type=float, default=0.05, show_default=True, metavar="SHARE",
              help="Share of the rows in the smaller class.")  # fmt: skip
@_SEED
def imbalance_command(
    out: Path,
    n_rows: int,
    n_features: int,
    n_relevant: int,
    size: float,
    share: float,
    seed: int,
) -> None:
    """As `shift`, where one class has few rows."""
    from srs_ooc.synthetic.problems import Imbalance

    _write(Imbalance(n_rows, n_features, n_relevant, seed, size, share), out)


@synth_command.command("noise")
@_OUT
@_ROWS
@_FEATURES
@click.option("--blocks", is_flag=True, help="Features in correlated blocks, as `synth blocks`.")
@_SEED
def noise_command(out: Path, n_rows: int, n_features: int, blocks: bool, seed: int) -> None:
    """Two equal classes that no feature is informative about."""
    from srs_ooc.synthetic.problems import Noise

    _write(Noise(n_rows, n_features, seed, blocks), out)


_HELP = {
    "chain": "Target = parity of the first i of R bits, i random: bit i is seen beside those "
    "before it.",
    "clique": "Target = parity of R bits: each is seen only beside all the others.",
    "marginal": "Target = one of R bits, a random one: each is marginally informative.",
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
        from srs_ooc.synthetic.problems import (
            MAX_SCENARIO_RELEVANT,
            Chain,
            Clique,
            Marginal,
            Scenario,
        )

        kinds: dict[str, type[Scenario]] = {"chain": Chain, "clique": Clique, "marginal": Marginal}
        kind = kinds[name]
        if n_rows is None:
            if not exact:
                raise UsageError("--rows: expected a number of rows (or --exact), found none.")
            n_rows = max(2, kind.n_cells(min(max(n_relevant, 1), MAX_SCENARIO_RELEVANT)))
        _write(kind(n_rows, n_features, n_relevant, seed, exact), out)

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


def _write(problem: "Problem", out: Path) -> None:
    from srs_ooc.synthetic.problem_tables import truth_path, write_table

    write_table(problem, out)
    n_relevant = len(problem.truth().relevant)
    say(
        f"{out}: {problem.n_rows:,} rows, {problem.n_features:,} features, {n_relevant} relevant. "
        f"Truth: {truth_path(out)}"
    )
