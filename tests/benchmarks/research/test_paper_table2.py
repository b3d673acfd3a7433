"""The paper's accuracy table: whole repeats, and the pairwise tests."""

import pytest
from paper_table2 import METHODS, Protocol, better, report, scores

pytestmark = pytest.mark.research


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([0.9, 0.91, 0.92], [0.5, 0.52, 0.51], 1),
        ([0.5, 0.52, 0.51], [0.9, 0.91, 0.92], -1),
        ([0.9, 0.5, 0.7], [0.5, 0.9, 0.71], 0),
        ([0.5, 0.6], [0.5, 0.6], 0),
        ([0.75, 0.5], [0.5, 0.25], 1),  # the same difference each time
        ([0.9], [0.5], 0),
    ],
)
def test_pairs_are_compared_by_their_differences(first, second, expected):
    assert better(first, second) == expected


def test_only_whole_repeats_are_told(capsys):
    """Two tables, three repeats, the second one cut short; published figures stand beside ours."""
    protocol = Protocol(["madelon", "orl"], 3, 10, 5, "value")
    done = {
        protocol.key(table, repeat, method): 0.5 + 0.1 * repeat
        for repeat, table, method in protocol.wanted()
    }
    del done[protocol.key("orl", 1, METHODS[-1])]
    found = scores(protocol, done)
    assert found["orl"][0] == [0.5, 0.7]
    assert scores(Protocol(["orl"], 3, 10, 5, "rank"), done) == {}
    report(found)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| | madelon | *madelon, published* | orl |"
    assert lines[2] == "| SRS q=0.01 a=0 | 0.600 ± 0.141 | *0.558* | 0.600 ± 0.141 |"
    assert any("0/2/0" in line for line in lines)
