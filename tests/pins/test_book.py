import book
from digests import differences


def test_every_pin_has_a_case_and_every_case_a_pin():
    pinned = {section: list(pins) for section, pins in book.read().items()}
    assert pinned == {section: names for section, (names, _) in book.SECTIONS.items()}


def test_every_difference_is_seen():
    pinned = {"a": [1, 2.0, {"b": None}], "c": "x"}
    assert (
        list(differences(pinned, {"a": [1, 2.0 + 1e-12, {"b": None}], "c": "x"}, close=1e-8)) == []
    )
    for found in (
        {"a": [1, 2.0 + 1e-12, {"b": None}], "c": "x"},
        {"a": [1, 2.0, {"b": 0}], "c": "x"},
        {"a": [1, 2.0], "c": "x"},
        {"a": [1, 2.0, {"b": None}]},
        {"a": [1, 2.0, {"b": None}], "c": "x", "d": 1},
    ):
        assert len(list(differences(pinned, found))) == 1
