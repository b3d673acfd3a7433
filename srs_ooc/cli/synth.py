"""``srs-ooc synth``: tables with a known truth, to try and to measure methods on."""

from pathlib import Path
from typing import Any

import click

from srs_ooc.cli.output import FILE, say


@click.command("synth")
@click.argument("problem")
@click.argument("out", type=FILE)
@click.option("--rows", type=int, metavar="N", help="Rows.")
@click.option("--features", type=int, metavar="P", help="Features.")
@click.option("--relevant", type=int, metavar="R",
              help="Relevant features; of blocks the blocks with a cause.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, metavar="S", help="Seed.")
@click.option("--block-size", type=int, metavar="B", help="Of blocks: features of a block.  "
              "[default: 20]")  # fmt: skip
@click.option("--correlation", type=float, metavar="RHO",
              help="Of blocks: of neighbours in a block.  [default: 0.9]")  # fmt: skip
@click.option("--blocks", is_flag=True, default=None,
              help="Of noise: features in blocks as those of blocks.")  # fmt: skip
@click.option("--exact", is_flag=True, default=None,
              help="Of chain: every cell of the joint distribution in proportion.")  # fmt: skip
def synth_command(problem: str, out: Path, **given: Any) -> None:
    """Write a table whose relevant features are known.

    OUT ends in .csv or .csv.gz (a table with the class in the last column, `target`) or in .zarr (a
    store); the truth is written to OUT.truth.json. PROBLEM is one of:

    \b
    madelon   two classes that differ only in how several features go together: a
              quarter of the R relevant features are informative, the others are
              linear combinations of them; the rest are noise
    blocks    features in correlated blocks, one cause in each of R of them. The
              class is the sign of a sum of the causes and noise; other members of
              a block with a cause stand in for it, and the truth lists those blocks
    noise     two equal classes that no feature is informative about
    chain     target = parity of the first i of R bits, i random: bit i is seen
              beside those before it

    With --exact every cell of the joint distribution of a chain comes N / cells times (cells: R
    2^R; once, without --rows), so that trees see infinite samples; irrelevant features then depend
    on the repetition alone and decrease no impurity anywhere (constant where there is one).

    \b
    Examples:
      srs-ooc synth madelon t.csv --rows 500 --features 3000 --relevant 20
    """
    from srs_ooc.synthetic import problem_of
    from srs_ooc.synthetic.table_files import truth_path, write_table

    made = problem_of(problem, {name: value for name, value in given.items() if value is not None})
    write_table(made, out)
    say(
        f"{out}: {made.n_rows:,} rows, {made.n_features:,} features, {len(made.relevant)} "
        f"relevant. Truth: {truth_path(out)}"
    )
