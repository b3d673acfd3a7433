"""What identifies a run, how options become it, and what memory it needs."""

from srs_ooc.runs.spec.identity import JUDGES, RunSpec
from srs_ooc.runs.spec.needs import (
    TrainingShape,
    extra_nbytes,
    fixed_nbytes,
    largest_subspace,
    recording_nbytes,
    work_nbytes,
)
from srs_ooc.runs.spec.options import Options
from srs_ooc.runs.spec.settling import check_same, declared, is_of_a_method, owner_of, settle

__all__ = [
    "JUDGES",
    "Options",
    "RunSpec",
    "TrainingShape",
    "check_same",
    "declared",
    "extra_nbytes",
    "fixed_nbytes",
    "is_of_a_method",
    "largest_subspace",
    "owner_of",
    "recording_nbytes",
    "settle",
    "work_nbytes",
]
