"""``srs-ooc synth``: tables with a known truth, to try and to measure methods on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from srs_ooc.base.errors import UsageError
from srs_ooc.cli.output import FILE, say, with_options

_OUT = click.argument("out", type=FILE)
_FEATURES = click.option("--features", "n_features", type=int, required=True, metavar="P",
                         help="Features.")  # fmt: skip
_RELEVANT = click.option("--relevant", "n_relevant", type=int, required=True, metavar="R",
                         help="Relevant features.")  # fmt: skip
_ROWS = click.option("--rows", "n_rows", type=int, required=True, metavar="N", help="Rows.")
_SEED = click.option("--seed", type=int, default=0, show_default=True, metavar="S", help="Seed.")


@click.group("synth")
def synth_command() -> None:
    """Write a table whose relevant features are known."""


_PROBLEMS: dict[str, tuple[str, list[Callable[[Any], Any]]]] = {
    "madelon": (
        """Two classes that differ only in how several features go together.

        A quarter of the R relevant features are informative, the others are linear combinations of
        them; the rest of the P features are noise. OUT ends in .csv or .csv.gz (a table with the
        class in the last column, `target`) or in .zarr (a store); the truth is written to
        OUT.truth.json.
        """,
        [_OUT, _ROWS, _FEATURES, _RELEVANT, _SEED],
    ),
    "blocks": (
        """Features in correlated blocks, one cause in each of R of them.

        The class is the sign of a sum of the causes and noise. The other members of a block with a
        cause stand in for it; the truth lists those blocks.
        """,
        [
            _OUT, _ROWS, _FEATURES,
            click.option("--relevant", "n_relevant", type=int, required=True, metavar="R",
                         help="Blocks with a cause."),
            click.option("--block-size", type=int, default=20, show_default=True, metavar="B",
                         help="Features of a block."),
            click.option("--correlation", type=float, default=0.9, show_default=True,
                         metavar="RHO", help="Of neighbours in a block."),
            _SEED,
        ],
    ),
    "noise": (
        "Two equal classes that no feature is informative about.",
        [
            _OUT, _ROWS, _FEATURES,
            click.option("--blocks", is_flag=True,
                         help="Features in correlated blocks, as `synth blocks`."),
            _SEED,
        ],
    ),
    "chain": (
        """Target = parity of the first i of R bits, i random: bit i is seen beside those before it.

        With --exact every cell of the joint distribution comes N / cells times (cells: R 2^R), so
        that trees see infinite samples; irrelevant features then depend on the repetition alone and
        decrease no impurity anywhere (constant where there is one repetition, the default).
        """,
        [
            _OUT, _FEATURES, _RELEVANT,
            click.option("--rows", "n_rows", type=int, metavar="N",
                         help="Rows.  [default with --exact: one of each cell]"),
            click.option("--exact", is_flag=True, help="Every cell in proportion; see above."),
            _SEED,
        ],
    ),
}  # fmt: skip
"""Help and options of each problem; the options are the fields of its parameters."""


def _command_of(name: str) -> Callable[..., None]:
    def command(out: Path, **given: Any) -> None:
        from srs_ooc.synthetic import PROBLEMS
        from srs_ooc.synthetic.table_files import truth_path, write_table

        kind: Any = PROBLEMS[name]
        if given["n_rows"] is None:
            if not given["exact"]:
                raise UsageError("--rows: expected a number of rows (or --exact), found none.")
            n_relevant = min(max(given["n_relevant"], 1), kind.most_relevant)
            given["n_rows"] = max(2, kind.n_cells(n_relevant))
        problem = kind(**given)
        write_table(problem, out)
        say(
            f"{out}: {problem.n_rows:,} rows, {problem.n_features:,} features, "
            f"{len(problem.relevant)} relevant. Truth: {truth_path(out)}"
        )

    return command


for _name, (_help, _options) in _PROBLEMS.items():
    synth_command.command(_name, help=_help)(with_options(_options)(_command_of(_name)))
