"""``srs-ooc synth``: exit statuses and messages."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from srs_ooc.cli import cli, main
from srs_ooc.synthetic import PROBLEMS

GOOD = ["--rows", "30", "--features", "12", "--relevant", "4", "--seed", "7"]


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["synth", *arguments])


def test_help_says_of_every_problem_what_it_is() -> None:
    help_ = invoke("--help").output
    assert all(f"\n  {name}  " in help_ for name in PROBLEMS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["odd", "t.csv"], "problem: expected madelon or chain"),
        (["madelon", "t.csv"], "--rows: expected a number for madelon, found none"),
        (["noise", "t.csv", *GOOD], "relevant: expected an option of noise"),
        (["madelon", "t.csv", *GOOD, "--block-size", "3"], "block_size: expected an option of"),
    ],
)
def test_a_problem_and_its_options_are_known(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["synth", *arguments])
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


def test_madelon_writes_a_table_and_its_truth(tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    result = invoke("madelon", str(out), *GOOD)
    assert result.exit_code == 0, result.output
    assert "30 rows, 12 features, 4 relevant" in result.output
    assert len(out.read_text().splitlines()) == 31
    truth = json.loads((tmp_path / "t.csv.truth.json").read_text())
    assert truth["parameters"] == {"n_rows": 30, "n_features": 12, "n_relevant": 4, "seed": 7}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["t.csv", "--rows", "30", "--features", "12", "--relevant", "13"], "expected 1 to 12"),
        (["t.csv", "--rows", "1", "--features", "12", "--relevant", "4"], "--rows: expected"),
        (["t.txt", *GOOD], "expected a name ending in"),
        (["t.csv", *GOOD[:-1], "-1"], "--seed: expected 0 or more, found -1"),
    ],
)
def test_bad_arguments_exit_with_2_and_leave_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_:
        main(["synth", "madelon", *arguments])
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [[], ["t.csv", "--rows", "many", "--features", "3", "--relevant", "1"]]
)
def test_missing_or_unreadable_options_exit_with_2(arguments: list[str]) -> None:
    assert invoke("madelon", *arguments).exit_code == 2


def test_an_exact_chain_has_one_row_of_each_cell(tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    result = invoke("chain", str(out), "--relevant", "3", "--features", "9", "--exact")
    assert result.exit_code == 0, result.output
    assert "24 rows, 9 features, 3 relevant" in result.output
    truth = json.loads((tmp_path / "t.csv.truth.json").read_text())
    assert truth["problem"] == "chain"
    assert len(truth["relevant"]) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--relevant", "3"], "--exact"), (["--relevant", "99", "--exact"], "expected 1 to 9")],
)
def test_a_chain_refuses_what_cannot_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["synth", "chain", str(tmp_path / "t.csv"), "--features", "9", *arguments])
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "parameters"),
    [
        (["blocks", "--relevant", "2"], {"n_relevant": 2, "block_size": 20, "correlation": 0.9}),
        (["blocks", "--relevant", "3", "--block-size", "4", "--correlation", "0.5"],
         {"n_relevant": 3, "block_size": 4, "correlation": 0.5}),
        (["noise"], {"blocks": False}),
        (["noise", "--blocks"], {"blocks": True}),
    ],
)  # fmt: skip
def test_options_reach_the_problem(
    tmp_path: Path, arguments: list[str], parameters: dict[str, object]
) -> None:
    out = tmp_path / "t.csv"
    name, *options = arguments
    sizes = ["--rows", "30", "--features", "45", "--seed", "7"]
    result = invoke(name, str(out), *sizes, *options)
    assert result.exit_code == 0, result.output
    truth = json.loads((tmp_path / "t.csv.truth.json").read_text())
    assert truth["problem"] == name
    assert truth["parameters"] == {"n_rows": 30, "n_features": 45, "seed": 7} | parameters
    assert f"{len(truth['relevant'])} relevant" in result.output
