"""The speed of runs that begin with a screen: of both parts, each for as long as it lasts."""

import pytest

from srs_ooc.planning import speed
from srs_ooc.planning.iterations import subject_asked
from srs_ooc.planning.speed import Speed, memory_plan, parts_of, speed_of
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options

P, N_FIRST = 20_000, 300


def planned(method, **options):
    options = Options(method=method, models=10, folds=2, **options)
    return subject_asked(None, Request(options, memory_mb=1000), 200, P)


@pytest.mark.parametrize("method", ["prs", "rase"])
def test_a_run_behind_a_screen_is_that_and_a_run_on_what_it_lets_through(method):
    subject = planned(method, screen=N_FIRST)
    n_trees, screen, rest_of_it = parts_of(subject)
    assert (screen.shape.n_candidates, screen.spec.subspace_size) == (P, P // 20)
    assert n_trees == 2000
    rest = rest_of_it.spec
    assert rest_of_it.shape.n_candidates == N_FIRST
    alone = subject_asked(
        None,
        Request(
            Options(method=method, models=10, folds=2, subspace_size=str(N_FIRST)), memory_mb=1000
        ),
        200,
        N_FIRST,
    ).spec
    assert (rest.sampler, rest.learner, rest.run) == (alone.sampler, alone.learner, alone.run)
    assert parts_of(planned(method)) is None


def test_the_seconds_are_those_of_both_parts(monkeypatch):
    def estimated(subject, *_):
        is_screen = subject.spec.run.method == "rs"
        return Speed(5.0 if is_screen else 0.25, False, "a try")

    monkeypatch.setattr(speed, "estimated_speed", estimated)
    subject = planned("prs", screen=N_FIRST, epochs=50)
    spec = subject.spec
    n_all = spec.sampler.most_iterations(P, spec.subspace_size)[0]
    found = speed_of(subject, memory_plan(subject))
    assert found.seconds * n_all == pytest.approx(2000 * 5.0 + (n_all - 2000) * 0.25)
    assert "2,000 trees of the screen of 5 s each" in found.how


def test_models_on_few_features_are_estimated_on_as_many():
    found = speed_of(planned("prs", inclusion="0.002"), memory_plan(planned("prs")), 0.0, 100_000)
    assert "of 40 made-up columns" in found.how
