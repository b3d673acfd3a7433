import json
import math

import pytest

from srs_ooc.cli import main

CHAIN = ["theory", "chain", "--n-features", "10000", "--q", "100", "--n-relevant", "3"]
KEYS = [
    "scenario",
    "n_features",
    "q",
    "n_relevant",
    "alpha",
    "rs",
    "srs",
    "log10_rs",
    "log10_srs",
]


def run(capsys, *arguments):
    """Run the command line; return status, standard output and standard error."""
    with pytest.raises(SystemExit) as exit_:
        main(list(arguments))
    captured = capsys.readouterr()
    return exit_.value.code, captured.out, captured.err


def run_json(capsys, *arguments):
    status, out, err = run(capsys, *arguments, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def test_json_has_its_documented_keys(capsys):
    found = run_json(capsys, *CHAIN)
    assert list(found) == KEYS
    assert found["rs"] == pytest.approx(1030406.1224489796, rel=1e-12)
    assert found["srs"] == pytest.approx(301.0204081632653, rel=1e-12)
    assert found["log10_rs"] == pytest.approx(math.log10(found["rs"]), rel=1e-14)
    assert (found["scenario"], found["alpha"], found["q"]) == ("chain", 1.0, 100)


def test_alpha_is_that_of_srs(capsys):
    found = run_json(capsys, *CHAIN, "--alpha", "0.01")
    assert found["alpha"] == 0.01
    assert 301 < found["srs"] < found["rs"]


def test_above_double_range_null_stands_beside_the_logarithm(capsys):
    found = run_json(capsys, "theory", "clique", "-p", "1000000000", "-q", "100", "-r", "60")
    assert found["rs"] is None
    assert found["srs"] is None
    assert found["log10_rs"] > found["log10_srs"] > 308
    assert "1.7e308" in found["reason"]


def test_never_is_null_with_the_reason(capsys):
    found = run_json(capsys, "theory", "clique", "-p", "100", "-q", "5", "-r", "6")
    assert [found[k] for k in ("rs", "srs", "log10_rs", "log10_srs")] == [None] * 4
    assert "all 6; q is 5" in found["reason"]


def test_a_reader_sees_both_methods(capsys):
    status, out, _ = run(capsys, *CHAIN)
    assert status == 0
    assert "RS  (alpha = 0)      1,030,406.1" in out
    assert "SRS (alpha = 1)      301.0" in out
    _, out, _ = run(capsys, "theory", "marginal", "-p", "100", "-q", "5", "-r", "9")
    assert "never" in out
    assert "5 of 9 are found and no more" in out


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing argument '{chain|clique|marginal}'"),
        (["ring"], "'ring' is not one of"),
        (["chain"], "Missing option '--n-features'"),
        (["chain", "-p", "9"], "Missing option '--q'"),
        (["chain", "-p", "9", "-q", "3"], "Missing option '--n-relevant'"),
        (["chain", "-p", "9", "-q", "10", "-r", "2"], "q: found 10, expected 1 to 9"),
        (["chain", "-p", "9", "-q", "3", "-r", "2", "--alpha", "2"], "between 0 and 1"),
        (["chain", "-p", "x"], "not a valid integer"),
        (["--q", "3"], "Missing argument"),
    ],
)
def test_bad_arguments_are_one_message_and_status_2(capsys, arguments, said):
    status, out, err = run(capsys, "theory", *arguments)
    assert status == 2
    assert out == ""
    assert said in err
    assert "Traceback" not in err
