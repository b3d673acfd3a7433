"""The benchmark of designs at small sizes: the chosen one is the program, others as they say."""

import subprocess
import sys
from pathlib import Path

import designs_screens as measures
import numpy as np
import pytest
from designs_catalogue import CHOSEN, GROUPS, Ranking, by_counting, by_e_values, e_bh, e_values
from designs_screens import (
    AlwaysHeld,
    FadingTally,
    half_of,
    of_large_nodes,
    of_loss_left_out,
    of_rows_left_out,
    rows_by_node,
)
from designs_steps import FACTS, ArrayCache, TableKey, cell, gain, largest_errors
from selection_tables import Scores

from srs_ooc.base.records import Outcome
from srs_ooc.evidence.tally import Tally
from srs_ooc.samplers.draws import Drawing
from srs_ooc.samplers.srs import EVERY
from srs_ooc.trees.block import Block
from srs_ooc.trees.kernel import grow_tree
from srs_ooc.trees.response import IMPORTANCE_BITS, Response, TrainingRows, TreeLimits
from srs_ooc.trees.saved import decode_trees

pytestmark = pytest.mark.research

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "research" / "designs.py"
N_ROWS, P = 72, 120
SMALL = ("--quick", "--problems", "shift", "--tag", "here")


def run(cache, *arguments):
    command = [sys.executable, str(SCRIPT), "--cache", str(cache), *SMALL, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)


@pytest.mark.slow
def test_designs_are_ranked_and_cut_and_nothing_is_done_twice(tmp_path):
    done = run(tmp_path, "--designs", "closing-left-out-loss", "e-values-5")
    assert done.returncode == 0, done.stderr
    assert "| squared loss on the half left out | " in done.stdout
    assert "| e-values of 4 runs cut at 5% | " in done.stdout
    assert "| rank-sum test, Benjamini and Hochberg | " in done.stdout
    again = run(tmp_path, "--designs", "closing-left-out-loss", "e-values-5")
    assert (again.stdout, again.stderr) == (done.stdout, "")

    cache, table = ArrayCache(tmp_path / "results", "here"), TableKey("shift", P, 100)
    (chosen,) = CHOSEN.rankings
    ranking = Ranking(**cache.get(table, chosen.name), n_families=1, n_features=P)
    relevant = cache.get(table, FACTS)["relevant"]
    assert len(relevant) == 20
    assert len(by_counting([ranking])) > 10


def test_a_fading_tally_weighs_the_last_iterations_most():
    tally, features = FadingTally(3, 300), np.array([0, 2], np.uint32)
    for iteration in range(300):
        tally.absorb(iteration, Outcome(features, np.array([1, 5], np.int64)))
    assert tally.importance.tolist() == [tally.n_drawn[0], 0, 5 * tally.n_drawn[2]]
    plain = FadingTally(1, 1)
    plain.absorb(0, Outcome(np.array([0], np.uint32), np.array([7], np.int64)))
    assert (plain.importance.tolist(), plain.n_drawn.tolist()) == ([7 * 16], [16])
    mean_weight = tally.n_drawn[0] / 300
    assert mean_weight == pytest.approx(16 * 7 / (3 * np.log(2)), rel=0.01)


def test_cells_and_their_largest_errors():
    found = [Scores(3, power, false, None, None) for power, false in ((0.5, 0.0), (1.0, 0.25))]
    assert cell(found) == "0.75 / 0.12"
    assert cell([]) == ""
    other = [Scores(3, power, 0.0, None, None) for power in (0.5, 0.5)]
    assert gain([found], [other]) == "+0.25 ± 0.25"
    assert gain([other], [found]) == "-0.25 ± 0.25"
    assert gain([[], found], [other, other]) == ""
    some = [found, [], found[:1]]
    assert largest_errors(some[1:]) == "One table a cell: no standard errors."
    assert largest_errors(some) == "Standard errors of a cell are at most 0.25 / 0.12."


@pytest.mark.slow
def test_no_minutes_stop_after_a_step_and_go_on(tmp_path):
    assert "the same command goes on" in run(tmp_path, "--minutes", "0").stderr
    assert run(tmp_path, "--report").stdout.strip() == ""
    assert len(list(tmp_path.glob("results/*/*.npz"))) == 1


def test_unknown_designs_are_refused(tmp_path):
    done = run(tmp_path, "--designs", "nothing")
    assert done.returncode == 1
    assert "--designs: expected chosen, " in done.stderr


def test_steps_of_different_content_have_different_names():
    designs = [design for group in GROUPS for design in group.designs]
    screens = {screen for design in designs for screen in design.screens}
    closings = {design.closing for design in designs}
    assert len({screen.name for screen in screens}) == len(screens)
    assert len({closing.name for closing in closings}) == len(closings)
    for group in GROUPS:
        assert len({design.name for design in group.designs}) == len(group.designs)
    assert {group.designs[0].name for group in GROUPS} == {"chosen", "trees-alone"}


@pytest.fixture(scope="module")
def grown():
    """A recorded tree on half of the rows, its block, and the rows."""
    random = np.random.default_rng(3)
    codes = random.integers(0, 200, (40, 90), dtype=np.uint8)
    labels = (codes[:2].sum(axis=0, dtype=np.int64) + random.integers(0, 90, 90)) // 170
    rows = TrainingRows.of(Response.classes(labels, 3), "gini")
    block = Block(40, 90, 1, tiled=False)
    block.codes[: codes.size] = codes.reshape(-1)
    features, half = np.arange(7, 47, dtype=np.uint32), half_of(rows, 11)
    tree = grow_tree(block, features, half, 5, TreeLimits(2**62), record=True)
    ends = np.array([0], np.int64), np.array([len(tree.record)], np.int64)
    return tree, decode_trees(tree.record, *ends), codes, features, rows, half


def counted(grown, rows):
    _, tree, codes, features, every, _ = grown
    place = np.searchsorted(features, tree.feature)
    response = every.response
    return rows_by_node(tree, codes, place, rows, response.labels, response.n_classes)


def test_half_of_the_rows_in_their_order(grown):
    *_, rows, half = grown
    assert len(half.order) == 45
    assert half.order.tolist() == [row for row in rows.order if row in set(half.order)]
    assert half.root_stats[:, 0].tolist() == np.bincount(rows.response.labels[half.order]).tolist()
    assert half_of(rows, 12).order.tolist() != half.order.tolist()


def test_rows_walked_down_a_tree_give_the_importances_of_the_kernel(grown, monkeypatch):
    tree, nodes, _, features, _, half = grown
    counts = counted(grown, half.order)
    np.testing.assert_array_equal(counts.sum(axis=1), nodes.n_rows)
    monkeypatch.setattr(measures, "LARGE_SHARE", 0.0)
    decrease = of_large_nodes(nodes, counts, counts)
    is_split = nodes.feature >= 0
    place = np.searchsorted(features, nodes.feature[is_split])
    sums = np.bincount(place, decrease[is_split], minlength=len(features))
    expected = np.ldexp(tree.importance.astype(np.float64), -IMPORTANCE_BITS)
    np.testing.assert_allclose(sums, expected, atol=1e-6)
    assert expected.sum() > 0.3


def test_small_nodes_do_not_count(grown, monkeypatch):
    monkeypatch.setattr(measures, "LARGE_SHARE", 0.2)
    _, nodes, *_, half = grown
    counts = counted(grown, half.order)
    decrease = of_large_nodes(nodes, counts, counts)
    is_small = nodes.n_rows < 0.2 * len(half.order)
    assert is_small[nodes.feature >= 0].any()
    assert not decrease[is_small].any()
    assert decrease[0] > 0


def test_loss_of_the_very_rows_grown_on_is_their_impurity(grown):
    _, nodes, *_, rows, half = grown
    inside = counted(grown, half.order)
    splits = nodes.feature >= 0
    lost, decrease = (
        of_loss_left_out(nodes, inside, inside),
        of_rows_left_out(nodes, inside, inside),
    )
    np.testing.assert_allclose(lost[splits], decrease[splits], atol=1e-12)
    outside = counted(grown, np.setdiff1d(rows.order, half.order))
    assert of_rows_left_out(nodes, inside, outside)[splits].min() >= -1e-12
    assert of_loss_left_out(nodes, inside, outside)[splits].min() < 0


def ranking_of(text, n_features=100, n_families=1):
    """A ranking of features (f) and decoys (d), none of them correlated."""
    items = [i + n_features * (letter == "d") for i, letter in enumerate(text)]
    largest = np.array(1)
    items = np.array(items, np.uint32)
    return Ranking(items, largest, np.zeros(0), n_families, n_features)


def test_e_values_by_hand():
    values = e_values(ranking_of("f" * 20 + "d" + "f" * 25), 0.05)
    assert values[:20].tolist() == [50.0] * 20  # 45 features, one decoy: (1 + 1) / 45 holds
    assert values[20] == 0
    assert np.count_nonzero(values) == 45
    # Two families: the last place where (1 + 1) / (2 x 20) holds is that of the first decoy.
    assert e_values(ranking_of("f" * 20 + "d" * 9, n_families=2), 0.05)[0] == 100.0
    assert not e_values(ranking_of("fffdfff"), 0.05).any()


def test_e_bh_by_hand():
    assert e_bh(np.array([0.0, 40.0, 5.0, 30.0]), 0.1).tolist() == [1, 3]
    assert e_bh(np.array([9.0, 9.9, 0.0]), 0.1).tolist() == []


def test_one_run_by_e_values_is_that_run_cut_at_its_level():
    ranking = ranking_of("f" * 30 + "d" + "f" * 3 + "d" * 3 + "f")
    assert by_e_values(0.05)([ranking]).tolist() == list(range(30))
    assert by_counting([ranking]).tolist() == [*range(30), 31, 32, 33]
    nothing = ranking_of("d" * 30)
    assert by_e_values(0.05)([ranking, nothing]).tolist() == list(range(30))
    assert by_e_values(0.05)([ranking, nothing, nothing, nothing]).tolist() == []


def test_leaders_that_are_always_held():
    tally = Tally(50, wins=False)
    outcome = Outcome(np.array([4, 9, 20], np.uint32), np.array([7, 5, 0], np.int64))
    tally.absorb(EVERY - 1, outcome)
    held = AlwaysHeld(Drawing(50, 6, "0.5"), tally, 2, 1, 0)
    held.absorb(EVERY - 1, outcome)
    for iteration in range(EVERY, EVERY + 20):
        assert {4, 9} < set(held.propose(iteration, iteration).features.tolist())
        assert held.version(iteration) == EVERY
