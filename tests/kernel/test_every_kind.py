"""Targets, weights, missing values, categories: the native kernel equals its reference exactly."""

import numpy as np
import pytest
from blocks import block_of
from hypothesis import given, settings
from problems import tree_problems

from srs_ooc.kernel.native import grow_tree, instruction_sets
from srs_ooc.kernel.reference import grow_on


def native_tree(problem, *, tiled, isa=""):
    return grow_tree(
        block_of(problem.codes, tiled=tiled),
        problem.features,
        problem.training,
        problem.key,
        problem.limits,
        isa,
        record=True,
        categorical=problem.categorical,
    )


@settings(max_examples=150, deadline=None)
@given(tree_problems())
def test_native_equals_reference_on_every_instruction_set_and_layout(problem):
    expected = grow_on(
        problem.codes,
        problem.training,
        problem.features,
        problem.key,
        problem.limits,
        categorical=problem.categorical,
    )
    for isa in instruction_sets():
        for tiled in (True, False):
            grown = native_tree(problem, tiled=tiled, isa=isa)
            np.testing.assert_array_equal(grown.importance, expected.importance)
            assert (grown.n_nodes, grown.depth) == (expected.n_nodes, expected.depth)
            assert grown.record == expected.record
