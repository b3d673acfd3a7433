"""Friedman 1: the function of the paper on five features, and nothing of the others."""

import numpy as np
import pytest

from srs_ooc.base.errors import UsageError
from srs_ooc.synthetic.problem_tables import csv_pieces, rows
from srs_ooc.synthetic.problems import Friedman


def test_the_target_is_the_function_and_unit_noise() -> None:
    problem = Friedman(4000, 30, 0)
    x = rows(problem, 0, 4000)[:, problem.positions]
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    noise = problem.target(0, 4000) - (y + 10 * x[:, 3] + 5 * x[:, 4])
    assert abs(noise.mean()) < 0.06
    assert noise.std() == pytest.approx(1, abs=0.05)
    assert np.abs(np.corrcoef(np.vstack([noise, x.T]))[0, 1:]).max() < 0.06


def test_features_are_uniform_and_independent() -> None:
    table = rows(Friedman(4000, 30, 1), 0, 4000)
    assert 0 <= table.min() < table.max() <= 1
    assert np.abs(table.mean(axis=0) - 0.5).max() < 0.02
    assert np.abs(table.var(axis=0) - 1 / 12).max() < 0.005
    assert np.abs(np.corrcoef(table.T) - np.eye(30)).max() < 0.08


def test_the_truth_names_the_terms() -> None:
    problem = Friedman(10, 30, 2)
    places = problem.positions.tolist()
    assert problem.truth().roles == {
        "interaction": tuple(sorted(places[:2])),
        "quadratic": (places[2],),
        "linear": tuple(sorted(places[3:])),
    }


def test_the_text_holds_the_target() -> None:
    problem = Friedman(50, 6, 3)
    lines = b"".join(csv_pieces(problem)).decode().splitlines()
    assert lines[0] == "f0,f1,f2,f3,f4,f5,target"
    assert [float(line.split(",")[-1]) for line in lines[1:]] == problem.target(0, 50).tolist()
    assert {line.count(",") for line in lines} == {6}


def test_fewer_than_five_features_are_refused() -> None:
    with pytest.raises(UsageError, match=r"--features: expected 5 or more, .* found 4"):
        Friedman(10, 4, 0)


FIXED = {
    "positions": [7, 4, 5, 3, 0],
    "target": [19.7111, 5.8717, 10.7786, 17.3491, 9.7181, 7.6268],
    "cells": [[0.3068, 0.5862, 0.1698, 0.6431], [0.0551, 0.2589, 0.9874, 0.4566]],
}


def test_fixed_vectors() -> None:
    problem = Friedman(6, 8, 0)
    assert problem.positions.tolist() == FIXED["positions"]
    assert problem.target(0, 6).tolist() == FIXED["target"]
    assert rows(problem, 0, 2)[:, :4].tolist() == FIXED["cells"]
