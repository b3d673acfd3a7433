"""Every figure is drawn of every kind of run, on axes that are given or new."""

from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from reports import KINDS, run_of

import srs_ooc
from srs_ooc import open_run
from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.cli import cli
from srs_ooc.results.report import signed

matplotlib = pytest.importorskip("matplotlib")
PLOTS = ("effects", "volcano", "qq", "discoveries")


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


SIDES = {
    "two classes": np.array(["a", "b"]),
    "the same the other way": np.array(["b", "a"]),
    "a regression": np.array([0.0, 1.0]),
    "three classes": np.array(["a", "b", "c"]),
}


@pytest.mark.parametrize("kind", SIDES)
def test_effects_are_drawn_on_the_side_they_are_of(plt, tmp_path, kind):
    """Column 0 is higher where the target is the last by name, or high; column 1 is lower there."""
    rng, sides = np.random.default_rng(4), SIDES[kind]
    y = sides[np.arange(90) % len(sides)]
    is_up = y == sorted(sides.tolist())[-1]
    values = rng.standard_normal((90, 30))
    values[:, 0] += 3 * is_up
    values[:, 1] -= 3 * is_up
    target = y + 0.01 * rng.standard_normal(90) if kind == "a regression" else y
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=target)
    result = srs_ooc.run(tmp_path / "t.zarr", iterations=60, memory_mb=4000)
    ax = result.plot_effects(plt.figure().subplots())
    names = [label.get_text() for label in ax.get_yticklabels()]
    drawn = {names[int(y)]: float(x) for line in ax.lines if line.get_marker() in "os"
             for x, y in line.get_xydata()}  # fmt: skip
    assert drawn["f0"] > 0.5
    assert drawn["f1"] < -0.5
    effects = {record["name"]: record for record in result.features("records", only_selected=True)}
    said = [text.get_text() for text in ax.child_axes[0].get_yticklabels()]
    for name, words in zip(names, said, strict=True):
        assert f"{effects[name]['effect']:.2f} ({effects[name]['low']:.2f} to" in words
    ax = result.plot_volcano(plt.figure().subplots())
    at = {text.get_text(): text.xy for text in ax.texts}
    assert at["f0"][0] == pytest.approx(drawn["f0"])
    assert at["f1"][0] == pytest.approx(drawn["f1"])
    assert at["f0"][1] == pytest.approx(-np.log10(effects["f0"]["p_value"]))
    others = ax.collections[0].get_offsets()
    assert len(others) == 30 - len(effects)
    assert np.abs(others[:, 0]).max() < 0.5
    colours = {part.get_label(): part.get_facecolor()[0] for part in ax.collections}
    assert not np.array_equal(*[colours[f"selected, {way}"]
                                for way in ("lower or falling", "higher or rising")])  # fmt: skip


@given(st.floats(0.01, 100))
def test_signed_effects_keep_size_and_order_on_either_side(ratio):
    assert signed("ratio of spreads", ratio) == pytest.approx(
        -signed("ratio of spreads", 1 / ratio)
    )
    assert (signed("ratio of spreads", ratio) > 0) == (ratio > 1)
    assert signed("AUC", 1.0) == 1 == -signed("AUC", 0.0)
    assert signed("AUC", 0.5) == 0 == signed("ratio of spreads", 1.0)
    assert signed("Spearman", -0.3) == signed("difference of shares", -0.3) == -0.3


@pytest.mark.parametrize(
    ("kind", "says"),
    [("provisional", "come with the verdict"), ("probe", "tests no single features")],
)
def test_where_there_are_no_effects_the_figure_says_why(plt, kind, says):
    for name in ("effects", "volcano"):
        ax = getattr(open_run(run_of(kind)), f"plot_{name}")(plt.figure().subplots())
        assert says in ax.texts[0].get_text()
        assert not ax.has_data()


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_expected_and_observed_p_values_are_of_all_tests(plt, kind):
    result = open_run(run_of(kind))
    expected, observed = result.qq()
    assert expected.shape == observed.shape
    assert expected.dtype == observed.dtype == np.float64
    assert (np.diff(expected) > 0).all()
    assert (np.diff(observed) > 0).all()
    counts = result.reading.verdict.location
    at = np.flatnonzero(counts)
    ranks = np.cumsum(counts[::-1])[::-1][at] - counts[at] / 2
    np.testing.assert_allclose(10.0**-expected, ranks / counts.sum())
    np.testing.assert_allclose(np.sqrt(observed) * 128, at + 0.5)
    ax = result.plot_qq(plt.figure().subplots())
    assert ax.get_title().startswith("Lambda")
    np.testing.assert_array_equal(ax.lines[1].get_xydata(), np.column_stack([expected, observed]))


def test_without_a_verdict_there_are_no_p_values_of_all_features(plt):
    for kind in ("provisional", "probe"):
        with pytest.raises(RunError, match="expected a run with a verdict by tests"):
            open_run(run_of(kind)).qq()
        assert "no p-values" in open_run(run_of(kind)).plot_qq().texts[0].get_text()


def report_called(*arguments):
    return CliRunner().invoke(cli, ["report", *map(str, arguments)])


def test_the_command_line_writes_single_figures_and_text(tmp_path):
    run, out = run_of("classes"), tmp_path / "v.svg"
    assert f"{out}: " in report_called(run, "--figure", "volcano", "-o", out).stdout
    assert "<svg" in out.read_text()
    assert report_called(run, "--format", "md", "-o", "-").stdout.startswith("# classes")
    said = report_called(run, "--figure", "volcano").exception
    assert "expected the name of a file" in str(said)
    said = report_called(run, "--figure", "volcano", "-o", tmp_path / "v.gif").exception
    assert "expected a name that ends in .svg, .png, .pdf" in str(said)


LONG = ["a class of <b>rows</b> whose name is long", "and one of which not much is shorter"]


def test_long_names_stay_within_the_figure(plt, tmp_path):
    """Of classes, of levels and of features."""
    rng, codes = np.random.default_rng(5), np.arange(120) % 2
    values = np.round(rng.standard_normal((120, 30)) + codes[:, None] * (np.arange(30) == 1), 3)
    head = [f"the {i}th of the features of this table" for i in range(30)]
    lines = [",".join([*head, "colour", "y"])]
    for row, code in zip(values.tolist(), codes.tolist(), strict=True):
        lines.append(",".join([*map(str, row), f"level {LONG[code]} of colour", LONG[code]]))
    (tmp_path / "t.csv").write_text("\n".join(lines))
    srs_ooc.ingest(tmp_path / "t.csv", tmp_path / "t.zarr", target="y")
    result = srs_ooc.run(tmp_path / "t.zarr", iterations=40, memory_mb=4000)
    assert result.features("records")[0]["name"] == "colour"
    feature = partial(result.plot_feature, "colour")
    for draw in (result.plot_effects, result.plot_volcano, feature):
        figure = plt.figure(figsize=(6.4, 5.2), layout="constrained")
        draw(ax=figure.subplots())
        figure.canvas.draw()
        drawn = figure.get_tightbbox()
        assert min(drawn.min) >= -0.01
        assert (drawn.max <= figure.get_size_inches() + 0.01).all()


def test_a_volcano_of_noise_shows_what_was_not_selected(plt, tmp_path):
    values, target = np.random.default_rng(6).standard_normal((60, 30)), np.arange(60) % 2
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=target)
    result = srs_ooc.run(tmp_path / "t.zarr", iterations=40, memory_mb=4000)
    ax = result.plot_volcano(plt.figure().subplots())
    assert len(ax.collections[0].get_offsets()) == 30
    ax = result.plot_effects(plt.figure().subplots())
    assert ax.texts[0].get_text() == "No feature is selected or marginally significant."


def test_a_volcano_of_groups_takes_one_row_a_group(plt, tmp_path):
    """Groups vary much, and so rows would make features strong that are not."""
    rng, groups = np.random.default_rng(7), np.arange(120) // 4
    values = rng.standard_normal((30, 40))
    values[:, 0] += 3 * (np.arange(30) % 2)
    given = {"target": groups % 2, "groups": groups.tolist()}
    srs_ooc.ingest(np.repeat(values, 4, axis=0), tmp_path / "groups.zarr", **given)
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=np.arange(30) % 2)
    found = []
    for name in ("groups", "t"):
        result = srs_ooc.run(tmp_path / f"{name}.zarr", iterations=40, memory_mb=4000)
        ax = result.plot_volcano(plt.figure().subplots())
        found.append(ax.collections[0].get_offsets())
    np.testing.assert_allclose(*found)
    assert len(found[0]) > 30
