"""Sizes and durations that people read; texts of others move no terminal, start no formula."""

import csv
import io
import unicodedata

import pytest
from command import error_of, json_of, srs_ooc
from examples import given, st
from tables import write_lines

from srs_ooc.base.text import (
    MB,
    ceil_div,
    describe_nbytes,
    describe_seconds,
    megabytes,
    no_formula,
    visible,
)

RED = "\x1b[31mred\x9b2J\u202etxt"
FORMULA = "=1+1"
UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(st.text())
def test_what_is_shown_holds_no_control_characters(text):
    shown = visible(text)
    assert not {unicodedata.category(c) for c in shown if c != "\n"} & UNSEEN
    plain = "".join(filter(str.isprintable, text))
    assert visible(plain) == plain


@given(st.text())
def test_no_text_starts_a_formula(text):
    assert no_formula(text)[:1] not in {"=", "+", "-", "@", "\t", "\r"}
    assert no_formula(text).removeprefix("'") == text.removeprefix("'")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shown")
    rows = ([i % 7, (i * 5) % 11, i, "@no" if i < 30 else "yes\x1b[2J"] for i in range(60))
    write_lines(folder / "t.csv", [[RED, FORMULA, "c", "target"], *rows])
    srs_ooc("ingest", "t.csv", "t.zarr", cwd=folder)
    options = ("--judge", "positive", "--iterations", 40, "--q", 3)
    srs_ooc("run", "t.zarr", *options, cwd=folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("inspect", "t.zarr"),
        ("inspect", "t.zarr", "--json"),
        ("run", "t.zarr"),
        ("features", "t.run"),
        ("status", "t.run"),
    ],
)
def test_no_command_writes_a_control_character(folder, command):
    done = srs_ooc(*command, cwd=folder)
    for text in (done.stdout, done.stderr):
        assert not set(text) & set("\x1b\x9b\u202e")


@pytest.mark.slow
def test_messages_show_control_characters_and_are_short(folder, tmp_path):
    (tmp_path / "no.txt").write_text("\x1b[2J" + "x" * 100_000 + "\n", encoding="utf-8")
    message = error_of("run", "t.zarr", "--exclude", tmp_path / "no.txt", cwd=folder)
    assert "\x1b" not in message
    assert len(message) < 5000
    assert "\\x1b" in error_of("inspect", "a\x1bb", cwd=folder)


@pytest.mark.slow
def test_data_are_exact_and_safe_for_spreadsheets_where_asked(folder, tmp_path):
    names = {record["name"] for record in json_of("features", "t.run", "--json", cwd=folder)}
    assert names == {RED, FORMULA, "c"}
    for options, name, label in (((), FORMULA, "@no"), (("--safe-csv",), "'=1+1", "'@no")):
        table = srs_ooc("features", "t.run", "--csv", *options, cwd=folder).stdout
        assert name in {row["name"] for row in csv.DictReader(io.StringIO(table))}
        out = tmp_path / f"{len(options)}.csv"
        srs_ooc("export", "t.zarr", "t.run", out, "--top", 3, *options, cwd=folder)
        with out.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert name in rows[0]
        assert rows[0]["target"] == label


# Sizes: rounding up, and what a person reads.


@given(st.integers(0, 1 << 70), st.integers(1, 1 << 40))
def test_ceil_div_is_the_least_enough(numerator: int, denominator: int) -> None:
    quotient = ceil_div(numerator, denominator)
    assert quotient * denominator >= numerator
    assert (quotient - 1) * denominator < numerator


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (150_130_335, "150.1 MB"),
        (20_000_000_000, "20.0 GB"),
        (406_000_000_000_000, "406.0 TB"),
    ],
)
def test_a_size_is_told_in_its_largest_unit(n_bytes: int, text: str) -> None:
    assert describe_nbytes(n_bytes) == text


def test_a_megabyte_is_a_million_bytes() -> None:
    assert MB == 10**6
    assert megabytes(128 * MB) == 128.0
    assert megabytes(1_249_999) == 1.2


# Durations in a unit that suits them.


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.00298, "2.98 ms"),
        (1.0, "1 s"),
        (119.0, "119 s"),
        (120.0, "2 min"),
        (3462.0, "57.7 min"),
        (7200.0, "2 h"),
        (2 * 86400.0, "2 days"),
        (731 * 86400.0, "2 years"),
        (1e12, "31,688 years"),
    ],
)
def test_a_duration_has_the_unit_of_which_there_are_two_or_more(seconds, said):
    assert describe_seconds(seconds) == said
