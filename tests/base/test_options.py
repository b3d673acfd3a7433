"""floor(alpha q) is taken on alpha's decimal text, everywhere by one function (law 9); spelling."""

import inspect
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from examples import given, st
from refusals import refused

import srs_ooc
from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import exact_share, floor_share, python_spelling, share_text, spelled
from srs_ooc.base.records import Outcome
from srs_ooc.evidence.judges import ProbeJudge
from srs_ooc.evidence.tally import Tally
from srs_ooc.methods.theory.paper_theory import Setting
from srs_ooc.samplers.draws import Drawing

THOUSANDTHS = st.integers(0, 1000).map(lambda n: f"{n / 1000:.3f}")


@given(text=THOUSANDTHS, q=st.integers(1, 10**6))
def test_the_floor_is_that_of_integers(text, q):
    numerator = round(1000 * float(text))
    assert floor_share(text, q) == floor_share(float(text), q) == numerator * q // 1000


@given(text=THOUSANDTHS, q=st.integers(1, 999))
def test_sampler_and_theory_hold_equally_many(text, q):
    drawing = Drawing(1000, q, text)
    assert drawing.n_held == Setting("chain", 1000, q, 1, text).n_held_max


def test_floats_would_lose_a_place():
    assert int(0.29 * 100) == 28
    assert floor_share("0.29", 100) == floor_share(0.29, 100) == 29


@pytest.mark.parametrize(
    ("given_", "text"),
    [("0.50", "0.5"), ("5e-1", "0.5"), ("-0", "0"), ("1.0", "1"), (Decimal("0.10"), "0.1")],
)
def test_equal_shares_have_equal_texts(given_, text):
    assert share_text(given_) == text


NO_PLAIN = ["0.950000000000000001", "1e-10", "1e-99999", "1_0e-1", "\u0660.\u0665", ".", ""]


@pytest.mark.parametrize("text", [*NO_PLAIN, "0." + "9" * 5000])
def test_options_take_plain_decimals_of_at_most_nine_places(text):
    refused(ValueError, "from 0 to 1", share_text, text)


def test_the_longest_share_is_compared_without_overflow():
    judge, tally = ProbeJudge(probe_min_draws=10, probe_min_wins="0.999999999"), Tally(1)
    tally.n_drawn[0] = tally.n_better[0] = 2**32 - 1
    outcome = Outcome(np.zeros(1, np.uint32), np.ones(1, np.int64), 0)
    assert judge.admit(tally, outcome).tolist() == [True]
    tally.n_better[0] -= 5
    assert judge.admit(tally, outcome).tolist() == [False]


def test_a_fraction_stands_for_itself():
    assert exact_share(Fraction(1, 3)) == Fraction(1, 3)


@pytest.mark.parametrize("wrong", ["x", "", "nan", "inf", "-0.1", "1.01", 2, -1, float("nan")])
def test_what_is_no_share_is_refused(wrong):
    for refuse in (exact_share, share_text):
        refused(ValueError, "from 0 to 1", refuse, wrong)
    refused(UsageError, "from 0 to 1", ProbeJudge.settle, {"probe_min_wins": wrong}, None)


MISSING = "say --missing ? --missing-target drop"
IN_PYTHON = " (Options of `srs-ooc ingest` alone: in Python read the table so with pandas.)"


@pytest.mark.parametrize(
    ("said", "spelt"),
    [
        ("--fdr: expected more", "fdr: expected more"),
        ("at least --memory-mb 79.", "at least memory_mb=79."),
        ("--class-weight NAME", "class_weight NAME"),
        ("`srs-ooc run --seed 5` goes on", "`srs-ooc run --seed 5` goes on"),
        ("a--b and -- alone", "a--b and -- alone"),
        ("say --kind a=integer.", "say kinds={'a': 'integer'}."),
        ("leave --no-values out", "leave keep_values=False out"),
        (MISSING, f'say --missing ? missing_target="drop"{IN_PYTHON}'),
    ],
)
def test_options_are_spelt_as_keywords_but_in_commands(said, spelt):
    assert spelled(said) == spelt
    assert spelled(spelt) == spelt


def test_what_python_spells_as_a_keyword_of_ingest_is_one():
    """Of each option that a message of an ingest names, but what the command line alone reaches."""
    known = {*inspect.signature(srs_ooc.ingest).parameters, "dry_run", "memory_mb"}
    for file in (Path(srs_ooc.__file__).parent / "ingestion").rglob("*.py"):
        text = re.sub("`.*?`", "", file.read_text())
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", text):
            name, _, _ = spelled(flag).partition(" (")
            assert name == flag or name.partition("=")[0] in known, (file.name, flag)


def test_only_errors_of_this_package_are_spelt_anew():
    with pytest.raises(UsageError, match=r"^top=3$"), python_spelling():
        raise UsageError("--top 3")
    with pytest.raises(ValueError, match=r"^--top 3$"), python_spelling():
        raise ValueError("--top 3")
