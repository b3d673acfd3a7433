"""``srs-ooc report``."""

from pathlib import Path

import click

from srs_ooc.base.errors import UsageError
from srs_ooc.base.text import MB, describe_nbytes
from srs_ooc.base.urls import Place
from srs_ooc.cli.output import FILE, RUN_STORE_OPTION, Brief, memory_option, say, write
from srs_ooc.results.figures import FIGURES, save_figure
from srs_ooc.results.page import KINDS, default_path, write_report
from srs_ooc.results.report import Report
from srs_ooc.runs.run import Run


@click.command("report", cls=Brief, first=("--out", "--format", "--figure", "--overwrite"))
@click.argument("run", type=FILE)
@click.option("-o", "--out", type=FILE, metavar="FILE",
              help="The file to make; - for standard output.  [default: RUN with .html in place "
                   "of .run]")  # fmt: skip
@click.option("--format", "kind", type=click.Choice(list(KINDS)),
              help="A page that needs no network, Markdown, or JSON.  [default: by the name of the "
                   "file, else html]")  # fmt: skip
@click.option("--figure", type=click.Choice(list(FIGURES)),
              help="One figure alone, to a file .svg, .png or .pdf.")  # fmt: skip
@RUN_STORE_OPTION
@click.option("--overwrite", is_flag=True, help="Replace a report that is there.")
@memory_option("the run's")
def report_command(
    run: Path,
    out: Path | None,
    kind: str | None,
    figure: str | None,
    store: Place | None,
    overwrite: bool,
    memory_mb: int | None,
) -> None:
    """Write what RUN found, and how sure that is, as one page to look at.

    The page is one file that opens without a network: what was asked and found, warnings, a plot of
    each listed feature, and how to repeat it. Pages and figures need
    `pip install 'srs-ooc[report]'`; Markdown and JSON need no library.

    The page is described in docs/report.md.

    \b
    Examples:
      srs-ooc report data.run
      srs-ooc report data.run --format md -o -
      srs-ooc report data.run --figure volcano -o v.svg
    """
    is_stdout = str(out) == "-"
    if figure is not None and (out is None or is_stdout):
        raise UsageError(
            f"--figure: expected the name of a file, such as -o {figure}.svg, found none."
        )
    if kind is None:
        found = "" if out is None else out.suffix.lower().removeprefix(".")
        kind = found if found in KINDS else "html"
    ledger = Run(run, writable=False)
    made_on = ledger.find_store(store)
    cap_nbytes = (memory_mb or int(ledger.meta("memory_mb"))) * MB
    report = Report(ledger, made_on, cap_nbytes, draws=figure is not None or kind == "html")
    if is_stdout:
        write(KINDS[kind](report))
        return
    target = default_path(run, kind) if out is None else out
    if figure is not None:
        save_figure(target, figure, report, replaces=overwrite)
    else:
        write_report(report, target, kind, replaces=overwrite)
    ledger.close()
    say(f"{target}: {describe_nbytes(target.stat().st_size)}")
