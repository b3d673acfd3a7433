"""The paper's accuracy table: going on after a kill, and the pairwise tests."""

import json

import pytest
from paper_table2 import better, read_results

LINES = [{"key": "madelon/0/ET K=1/9", "accuracy": 0.5}, {"key": "orl/0/ET K=1/9", "accuracy": 0.7}]


def test_a_line_cut_short_is_taken_away(tmp_path):
    file = tmp_path / "results.jsonl"
    whole = "".join(json.dumps(line) + "\n" for line in LINES)
    file.write_text(whole + '{"key": "madelon/1')
    assert read_results(file) == {line["key"]: line["accuracy"] for line in LINES}
    assert file.read_text() == whole


def test_no_file_is_nothing_done(tmp_path):
    assert read_results(tmp_path / "none") == {}


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
