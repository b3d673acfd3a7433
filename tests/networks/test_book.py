"""The folder of a network: which one is gone on with."""

import pytest

from srs_ooc.base.errors import RunError
from srs_ooc.networks.edges import open_book


def test_a_network_of_a_version_with_options_that_did_nothing_goes_on(tmp_path):
    folder, identity = tmp_path / "a.network", {"method": "prs", "epochs": 5}
    open_book(folder, identity | {"grid": None, "smoothness": "0.0"}, 4).close()
    open_book(folder, identity, 4).close()
    with pytest.raises(RunError, match=r"epochs 5 \(asked for: 6\)"):
        open_book(folder, identity | {"epochs": 6}, 4)


def test_a_network_that_does_not_say_its_thresholds_has_them_between_ranks(tmp_path):
    folder, identity = tmp_path / "a.network", {"method": "prs"}
    open_book(folder, identity, 4).close()
    open_book(folder, identity, 4).close()
    open_book(folder, identity | {"thresholds": "rank"}, 4).close()
    with pytest.raises(RunError, match=r"thresholds rank \(asked for: value\)"):
        open_book(folder, identity | {"thresholds": "value"}, 4)
