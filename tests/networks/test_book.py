"""The folder of a network: which one is gone on with."""

import pytest

from srs_ooc.base.errors import RunError
from srs_ooc.networks.edges import open_book


def test_a_network_goes_on_with_the_same_options_and_names_those_that_differ(tmp_path):
    folder, identity = tmp_path / "a.network", {"method": "prs", "epochs": 5}
    open_book(folder, identity, 4).close()
    open_book(folder, identity, 4).close()
    with pytest.raises(RunError, match=r"epochs 5 \(asked for: 6\)"):
        open_book(folder, identity | {"epochs": 6}, 4)


def test_a_network_of_a_version_with_other_options_is_refused_by_their_names(tmp_path):
    folder, identity = tmp_path / "a.network", {"method": "prs", "thresholds": "rank"}
    open_book(folder, {"method": "prs", "smoothness": "0.0"}, 4).close()
    with pytest.raises(RunError, match=r"smoothness 0\.0.*thresholds None.*name another folder"):
        open_book(folder, identity, 4)
