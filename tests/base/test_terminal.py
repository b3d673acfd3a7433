"""What others wrote moves no terminal and starts no formula; data stay exact."""

import csv
import io
import unicodedata

import pytest
from command import error_of, json_of, srs_ooc
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.base.text import no_formula, visible

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
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([RED, FORMULA, "c", "target"])
        for i in range(60):
            writer.writerow([i % 7, (i * 5) % 11, i, "@no" if i < 30 else "yes\x1b[2J"])
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
    assert {record["name"] for record in json_of("features", "t.run", "--json", cwd=folder)} == {
        RED, FORMULA, "c",
    }  # fmt: skip
    for options, name, label in (((), FORMULA, "@no"), (("--safe-csv",), "'=1+1", "'@no")):
        table = srs_ooc("features", "t.run", "--csv", *options, cwd=folder).stdout
        assert name in {row["name"] for row in csv.DictReader(io.StringIO(table))}
        out = tmp_path / f"{len(options)}.csv"
        srs_ooc("export", "t.zarr", "t.run", out, "--top", 3, *options, cwd=folder)
        with out.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert name in rows[0]
        assert rows[0]["target"] == label
