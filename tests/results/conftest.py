"""What tests before these loaded into the process is none of the caps of these."""

import pytest

from srs_ooc.base.budget import growth_counted


@pytest.fixture(autouse=True, scope="module")
def _growth_only():
    with growth_counted():
        yield
