"""What identifies a run, how options become it, and what memory it needs."""

from srs_ooc.spec.identity import RANK, UNWEIGHTED, Options, RunSpec
from srs_ooc.spec.needs import (
    Shape,
    extra_nbytes,
    fixed_nbytes,
    largest_subspace,
    recording_nbytes,
    work_nbytes,
)
from srs_ooc.spec.settling import DEFAULT_ALPHA, JUDGES, check_same, settle

__all__ = [
    "DEFAULT_ALPHA",
    "JUDGES",
    "RANK",
    "UNWEIGHTED",
    "Options",
    "RunSpec",
    "Shape",
    "check_same",
    "extra_nbytes",
    "fixed_nbytes",
    "largest_subspace",
    "recording_nbytes",
    "settle",
    "work_nbytes",
]
