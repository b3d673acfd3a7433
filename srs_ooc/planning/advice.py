"""What to run with, one reason each."""

from dataclasses import dataclass

from srs_ooc.evidence.judges import FAMILIES
from srs_ooc.evidence.verdict import fewest_features
from srs_ooc.paper_theory.settings import Setting
from srs_ooc.paper_theory.times import expected_time
from srs_ooc.planning.iterations import recommended_iterations
from srs_ooc.planning.memory import MemoryPlan
from srs_ooc.planning.speed import cold_seconds, fetching_seconds
from srs_ooc.planning.subject import Subject
from srs_ooc.runs.spec import RunSpec, block_for
from srs_ooc.samplers.srs import SrsParams

LEVEL = 0.1
"""What is said of counting is said at the default level."""
DEFAULT_ALPHA = str(SrsParams.options()["alpha"].default)


@dataclass(frozen=True)
class Advice:
    """One recommendation: the option, its value, what the plan was made with, and why."""

    name: str
    value: str
    planned: str
    reason: str


def advice_for(subject: Subject, memory: MemoryPlan, read_mb: float) -> list[Advice]:
    """Return the recommendations; what was asked for stands beside each."""
    spec = subject.spec
    n_iterations, why = recommended_iterations(subject)
    iterations = Advice("iterations", str(n_iterations), str(n_iterations), why)
    if not spec.model.is_tree or spec.method.splits_rows:
        return [iterations]  # the rest was measured with trees, of methods that are told q
    return [
        iterations,
        _alpha(subject),
        Advice(
            "max_features",
            str(spec.subspace_size),
            str(spec.learner.max_features),
            "K = q: the best of all candidates is what lifts a feature out of noise, and among "
            "many irrelevant features it masks nothing for good (docs/errata.md, 1)",
        ),
        Advice(
            "trees_per_subspace",
            "1",
            str(spec.learner.trees_per_subspace),
            f"another tree grows on the same features again; another subspace, {read_mb:.3g} MB to "
            "page in, shows each feature beside others",
        ),
        _draw_block(subject, memory),
        Advice(
            "judge",
            "decoy",
            spec.judge,
            "its verdict bounds the share of false features among the selected; where none is "
            f"marginally significant it selects at least {_fewest(spec)} or none, so where fewer "
            "are expected certify them with --permutations 9 (takes about 5 times as long)",
        ),
    ]


def _fewest(spec: RunSpec) -> int:
    return fewest_features(spec.decoys or FAMILIES, 1, LEVEL)


def _draw_block(subject: Subject, memory: MemoryPlan) -> Advice:
    spec = subject.spec
    planned = str(spec.draw_block)
    if memory.mapped:
        return Advice("draw_block", "1", planned, "the store stays in memory: reading costs little")
    if subject.is_remote and subject.codes_nbytes <= subject.cap_nbytes:
        return Advice("draw_block", "1", planned, "the store is soon kept on this disk whole")
    size = block_for(spec.subspace_size, subject.column_nbytes)
    if size == 1:
        reason = "single features are long reads already, or the subspace is too small for blocks"
        return Advice("draw_block", "1", planned, reason)
    seconds = fetching_seconds if subject.is_remote else cold_seconds
    where = "a server, at assumed rates," if subject.is_remote else "a cold disk"
    single, blocks = (
        1000 * seconds(spec.subspace_size, g, subject.column_nbytes) for g in (1, size)
    )
    return Advice(
        "draw_block",
        str(size),
        planned,
        f"the store does not fit the cap: from {where} single features take about "
        f"{single:,.0f} ms an iteration, blocks of {size} about {blocks:,.0f} ms, and each feature "
        "is drawn as often (docs/theory.md, Blocks)",
    )


def _alpha(subject: Subject) -> Advice:
    spec, p = subject.spec, subject.n_items
    if spec.subspace_size == p:
        reason = "every feature is in every subspace; there is nothing to hold"
        return Advice("alpha", "0", spec.alpha, reason)
    rs, srs = (
        expected_time(Setting.of("chain", p, spec.subspace_size, min(2, p), alpha))
        for alpha in ("0", DEFAULT_ALPHA)
    )
    gain = "" if rs is None or srs is None else f" {rs.value / srs.value:,.3g} times faster"
    return Advice(
        "alpha",
        DEFAULT_ALPHA,
        spec.alpha,
        f"a feature seen only beside another is found{gain} than by RS, and at most half of the "
        "room for new features is given up",
    )
