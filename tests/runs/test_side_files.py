"""Files of names are read in bounded memory, and what is found does not depend on how much."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.base.errors import UsageError
from srs_ooc.ingestion.formats import hash_text
from srs_ooc.runs import inputs
from srs_ooc.runs.inputs import SideFile, read_lines
from srs_ooc.runs.run_memory import NAME_NBYTES

WORDS = st.text("abé ", min_size=1, max_size=4).map(str.strip).filter(bool)


class Texts:
    """What is asked of a store's names."""

    def __init__(self, texts):
        self._texts = [text.encode() for text in texts]

    def __len__(self):
        return len(self._texts)

    def texts(self):
        return iter(self._texts)

    def encoded(self, index):
        return self._texts[index]


def find_all(file, names, spare_nbytes=0):
    return SideFile(file, "feature", len(names)).find_all(Texts(names), spare_nbytes)


@given(
    names=st.lists(WORDS, min_size=1, max_size=20, unique=True),
    data=st.data(),
    size=st.integers(1, 7),
    collide=st.booleans(),
)
def test_the_names_found_do_not_depend_on_the_memory(tmp_path_factory, names, data, size, collide):
    """Few names and few lines at a time, and hashes that are equal: it is set membership."""
    asked = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=30))
    file = tmp_path_factory.mktemp("side") / "names.txt"
    file.write_text("\n\n".join(asked) + "\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "FEWEST", size)
        patch.setattr(inputs, "LINES", size)
        if collide:
            patch.setattr(inputs, "hash_text", lambda text: hash_text(text) % 3)
        found = find_all(file, names)
    assert found.tolist() == [name in asked for name in names]


def test_more_memory_means_fewer_readings(tmp_path, monkeypatch):
    file = tmp_path / "names.txt"
    file.write_text("n7\n")
    monkeypatch.setattr(inputs, "FEWEST", 10)
    readings = []
    for n_at_a_time in (10, 50, 100):
        counts = []
        monkeypatch.setattr(
            inputs, "read_lines", lambda *a, n=counts: n.append(1) or read_lines(*a)
        )
        spare = NAME_NBYTES * n_at_a_time
        assert find_all(file, [f"n{i}" for i in range(100)], spare).sum() == 1
        readings.append(len(counts))
    assert readings == [1 + 10, 1 + 2, 1 + 1]  # one counts the lines


def test_a_line_that_is_no_name_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "MOST_LINE_NBYTES", 100)
    file = tmp_path / "names.txt"
    file.write_bytes(b"a\n" + b"x" * 10_000)
    with pytest.raises(UsageError, match=r"names.txt, line 2: expected one feature a line"):
        list(read_lines(file, "feature"))


def test_far_more_lines_than_names_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "SPARE_LINES", 5)
    file = tmp_path / "names.txt"
    file.write_text("a\n" * 12)
    with pytest.raises(UsageError, match="at most 9 lines, as the store has 2 features"):
        find_all(file, "ab")
    file.write_text("a\n" * 9)
    np.testing.assert_array_equal(find_all(file, "ab"), [True, False])


def test_long_lines_are_looked_up_a_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "LINES_NBYTES", 100)
    blocks = list(inputs.together(iter([b"x" * 60] * 5 + [b"y"] * 3), len))
    assert [len(block) for block in blocks] == [2, 2, 4]


def test_a_file_that_changes_or_can_be_read_once_only_is_an_error(tmp_path):
    file = tmp_path / "names.txt"
    for before, after in (("a\n", "a\nb\n"), ("a\nb\n", "a\n"), ("c\nb\n", "")):
        file.write_text(before)
        counted = SideFile(file, "feature", 2)
        file.write_text(after)
        with pytest.raises(UsageError, match="changed while it was read"):
            counted.find_all(Texts("ab"), 0)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="pipe: expected a file, which is read more than once"):
        SideFile(tmp_path / "pipe", "feature", 2)
