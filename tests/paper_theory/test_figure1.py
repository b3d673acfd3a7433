from itertools import pairwise

import pytest
from paper_table1 import PANELS, draw, panel_curves


@pytest.mark.parametrize("panel", PANELS)
def test_curves_climb_to_all_relevant_features(panel):
    rs, srs = panel_curves(*panel)
    n_relevant = panel[3]
    for line in (rs, srs):
        assert all(b - a > -1e-9 for a, b in pairwise(line.found))
        assert line.iterations == sorted(set(line.iterations))
        assert line.found[-1] > 0.98 * n_relevant
    assert (rs.label, srs.label) == ("RS", "SRS")
    ahead, behind = (rs, srs) if panel[0] == "marginal" else (srs, rs)
    assert all(a >= b - 1e-9 for a, b in zip(ahead.found, behind.found, strict=True))


@pytest.mark.slow
def test_the_figure_is_drawn_with_three_panels(tmp_path):
    pytest.importorskip("matplotlib")
    draw(tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text()
    assert "<svg" in text
    assert text.count('id="axes_') == 3
