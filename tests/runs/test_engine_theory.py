"""The engine on exact tables needs as many iterations as the theory says (Section 4, real trees).

benchmarks/research/theory_check.py is the same at length.
"""

import numpy as np
import pytest
import theory_examples as examples
from theory_examples import real_tree_time

from srs_ooc.base.text import MB
from srs_ooc.ingestion.ingest_options import stored_positions
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.resources import RunContext
from srs_ooc.runs.run_memory import shape_of
from srs_ooc.runs.settling import settle
from srs_ooc.runs.spec import Options
from srs_ooc.runs.task import Task
from srs_ooc.samplers.srs import SequentialRandomSubspace
from srs_ooc.store.store import Store
from srs_ooc.synthetic.problem_tables import write_table
from srs_ooc.synthetic.problems import Chain, Clique, Marginal

N_RUNS = 300
KINDS = {"chain": Chain, "clique": Clique, "marginal": Marginal}


def times_to_find_all(store, alpha, relevant):
    opened, inputs = Store.open(store), Inputs()
    options = Options(alpha=alpha, subspace_size="12", judge="positive")
    spec = settle(options, shape_of(opened.manifest, inputs), opened.fingerprint, 1000 * MB)
    task, times = Task.of_run(spec, opened, inputs), []
    with RunContext(spec, opened, task, 1000 * MB, threads=1).resources() as resources:
        for seed in range(N_RUNS):
            engine = resources.engine(None, seed)
            sampler = engine.sampler
            assert isinstance(sampler, SequentialRandomSubspace)
            engine.advance(10**6, lambda: sampler.n_kept < len(relevant))  # noqa: B023
            assert set(sampler.kept.features.tolist()) == relevant
            times.append(engine.iteration)
    return np.array(times)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", ["0", "0.5", "1"])
@pytest.mark.parametrize(("name", "repetitions"), [("chain", 1), ("clique", 2), ("marginal", 2)])
def test_the_mean_time_is_the_theorys(tmp_path, name, repetitions, alpha):
    problem = KINDS[name](KINDS[name].n_cells(3) * repetitions, 40, 3, 0, True)
    write_table(problem, tmp_path / "t.zarr")
    relevant = set(np.flatnonzero(np.isin(stored_positions(40), problem.positions)).tolist())
    times = times_to_find_all(tmp_path / "t.zarr", alpha, relevant)
    expected = float(real_tree_time(getattr(examples, name)(3), 40, 12, alpha, repetitions))
    assert abs(times.mean() - expected) < 4.5 * times.std() / N_RUNS**0.5
