"""A few things kept while they are used."""

from srs_ooc.base.files import Recent


def test_the_last_ones_made_are_kept_and_others_made_again():
    recent, made = Recent(2), []

    def get(key):
        def make():
            made.append(key)
            return [key]

        return recent.get(key, make)

    first = get("a")
    assert get("a") is first
    get("b")
    assert get("a") is first
    get("c")
    assert get("c") == ["c"]
    assert made == ["a", "b", "c"]
    assert get("a") is not first
    assert made == ["a", "b", "c", "a"]
    assert len(recent) == 2
