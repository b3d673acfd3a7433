"""``srs-ooc synth``: tables with a known truth, to try and to measure methods on."""

from pathlib import Path

import click


@click.group("synth")
def synth_command() -> None:
    """Write a table whose relevant features are known."""


@synth_command.command("madelon")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--rows", "n_rows", type=int, required=True, metavar="N", help="Rows.")
@click.option("--features", "n_features", type=int, required=True, metavar="P", help="Features.")
@click.option(
    "--relevant", "n_relevant", type=int, required=True, metavar="R", help="Relevant features."
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="S", help="Seed.")
def madelon_command(out: Path, n_rows: int, n_features: int, n_relevant: int, seed: int) -> None:
    """Two classes told apart only by how several features go together.

    A quarter of the R relevant features are informative, the others are linear combinations of
    them; the rest of the P features are noise. OUT ends in .csv or .csv.gz (a table with the class
    in the last column, `target`) or in .zarr (a store); the truth is written to OUT.truth.json.
    """
    from srs_ooc.synth.madelon import Madelon
    from srs_ooc.synth.output import truth_path, write_table

    write_table(Madelon(n_rows, n_features, n_relevant, seed), out)
    click.echo(
        f"{out}: {n_rows:,} rows, {n_features:,} features, {n_relevant} relevant. "
        f"Truth: {truth_path(out)}"
    )
