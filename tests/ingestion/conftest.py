"""What tests before these loaded into the process is none of the caps of these."""

from contextlib import nullcontext

import pytest

from srs_ooc.base.budget import growth_counted

COUNT_ALL = {"test_ingest_memory", "test_rows"}
"""Modules that are about what counts, or fill the process themselves."""


@pytest.fixture(autouse=True, scope="module")
def _growth_only(request):
    with nullcontext() if request.path.stem in COUNT_ALL else growth_counted():
        yield
