import book


def test_every_pin_has_a_case_and_every_case_a_pin():
    pinned = {section: list(pins) for section, pins in book.read().items()}
    assert pinned == {section: names for section, (names, _) in book.SECTIONS.items()}
