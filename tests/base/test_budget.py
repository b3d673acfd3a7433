import numpy as np

from srs_ooc.base.budget import (
    PROCESS_NBYTES,
    growth_counted,
    peak_resident_nbytes,
    process_nbytes,
    resident_nbytes,
)
from srs_ooc.base.text import MB


def test_only_growth_counts_in_the_block_and_the_outermost_one_says_from_when():
    before = resident_nbytes()
    with growth_counted():
        assert resident_nbytes() < before
        assert process_nbytes() == PROCESS_NBYTES
        held = np.ones(10_000_000)  # 80 MB
        with growth_counted():
            assert resident_nbytes() > 70 * MB
            assert 70 * MB < peak_resident_nbytes() < before + 80 * MB
        assert resident_nbytes() > 70 * MB
    assert held.all()
    assert resident_nbytes() > before
    assert process_nbytes() >= PROCESS_NBYTES


def test_a_peak_from_before_the_block_does_not_count():
    np.ones(20_000_000).sum()  # 160 MB, given back
    with growth_counted():
        assert peak_resident_nbytes() < 100 * MB
