import book
import pytest
from message_cases import NAMES, errors_of, is_said, pin_of_messages, texts_of

PINS = book.read()["messages"]
CODE = '''
"""A docstring of several words."""
def f(x):
    """Another docstring of several words."""
    if x:
        raise errors.UsageError(f"{x}: expected a thing, found {x!r:>4}" " and no more.")
    return "a sentence of words" if x else f"{', '.join(x)} or what {'is not said' + x}"
'''


@pytest.mark.parametrize("name", NAMES)
def test_every_text_of_the_package_is_as_pinned(name, tmp_path):
    assert pin_of_messages(name, tmp_path) == PINS[name]


def test_texts_are_found_with_what_is_computed_left_out_and_docstrings_are_not():
    error = "{}: expected a thing, found {} and no more."
    sentences = {"a sentence of words", "{} or what {}", "is not said", error}
    assert {text for text in texts_of(CODE) if is_said(text) or "what" in text} == sentences
    assert [found for found in errors_of(CODE) if is_said(found[1])] == [("UsageError", error)]
