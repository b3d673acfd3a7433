"""Every figure is drawn of every kind of run, on axes that are given or new."""

import pytest
from click.testing import CliRunner
from reports import KINDS, run_of

from srs_ooc import open_run
from srs_ooc.base.errors import UsageError
from srs_ooc.cli import cli

matplotlib = pytest.importorskip("matplotlib")
PLOTS = (
    "effects", "volcano", "cut", "levels", "discoveries", "draws", "correlation", "accuracy",
    "memory", "time",
)  # fmt: skip


@pytest.fixture
def plt():
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    yield plt
    plt.close("all")


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", KINDS)
def test_every_plot_is_drawn_on_the_axes_given(plt, kind):
    result = open_run(run_of(kind))
    for name in PLOTS:
        ax = plt.figure().subplots()
        assert getattr(result, f"plot_{name}")(ax=ax) is ax
        assert ax.has_data() or ax.texts
        plt.close("all")


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["classes", "many", "numbers"])
def test_a_feature_is_plotted_by_name(plt, kind):
    result = open_run(run_of(kind))
    for name in ("f6", "$x^2$ `code` | & 'quoted'", "_hidden"):
        ax = result.plot_feature(name)
        assert ax.get_title().strip() == name
        assert ax.has_data()
        ax.figure.canvas.draw()
        plt.close("all")


def test_a_feature_that_is_not_there_is_refused(plt):
    with pytest.raises(UsageError, match="expected the name of a feature, found 'nowhere'"):
        open_run(run_of("classes")).plot_feature("nowhere")


def report_called(*arguments):
    return CliRunner().invoke(cli, ["report", *map(str, arguments)])


def test_the_command_line_writes_single_figures_and_text(tmp_path):
    run, out = run_of("classes"), tmp_path / "cut.svg"
    assert f"{out}: " in report_called(run, "--figure", "cut", "-o", out).stdout
    assert "<svg" in out.read_text()
    assert report_called(run, "--format", "md", "-o", "-").stdout.startswith("# classes")
    said = report_called(run, "--figure", "cut").exception
    assert "expected the name of a file" in str(said)
    said = report_called(run, "--figure", "cut", "-o", tmp_path / "cut.gif").exception
    assert "expected a name that ends in .svg, .png, .pdf" in str(said)
