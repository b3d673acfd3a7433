import pytest

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import python_spelling, spelled


@pytest.mark.parametrize(
    ("said", "spelt"),
    [
        ("--fdr: expected more", "fdr: expected more"),
        ("at least --memory-mb 79.", "at least memory_mb=79."),
        ("--class-weight NAME", "class_weight NAME"),
        ("`srs-ooc run --seed 5` goes on", "`srs-ooc run --seed 5` goes on"),
        ("a--b and -- alone", "a--b and -- alone"),
    ],
)
def test_options_are_spelt_as_keywords_but_in_commands(said, spelt):
    assert spelled(said) == spelt


def test_only_errors_of_this_package_are_spelt_anew():
    with pytest.raises(UsageError, match=r"^top=3$"), python_spelling():
        raise UsageError("--top 3")
    with pytest.raises(ValueError, match=r"^--top 3$"), python_spelling():
        raise ValueError("--top 3")
