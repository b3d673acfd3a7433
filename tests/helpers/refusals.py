"""Calls that refuse what they are given."""

import pytest


def refused(error, match, call, *args, **kwargs):
    """Have a call end with an error of a kind, of words that match; return what it says."""
    with pytest.raises(error, match=match) as found:
        call(*args, **kwargs)
    return str(found.value)
