"""What to run with, one reason each."""

from dataclasses import dataclass

from srs_ooc.plan.iterations import recommended_iterations
from srs_ooc.plan.subject import Subject
from srs_ooc.spec import DEFAULT_ALPHA
from srs_ooc.theory.settings import Setting
from srs_ooc.theory.times import expected_time


@dataclass(frozen=True)
class Advice:
    """One recommendation: the option, its value, what the plan was made with, and why."""

    name: str
    value: str
    planned: str
    reason: str


def advice_for(subject: Subject, read_mb: float) -> list[Advice]:
    """Return the recommendations; what was asked for stands beside each."""
    spec = subject.spec
    n_iterations, why = recommended_iterations(subject)
    return [
        Advice("iterations", str(n_iterations), str(n_iterations), why),
        _alpha(subject),
        Advice(
            "max_features",
            str(spec.subspace_size),
            str(spec.max_features),
            "K = q: the best of all candidates is what lifts a feature out of noise, and among "
            "many irrelevant features it masks nothing for good (docs/errata.md, 1)",
        ),
        Advice(
            "trees_per_subspace",
            "1",
            "1",
            f"another tree sees the same company again; another subspace, {read_mb:.3g} MB to "
            "page in, shows each feature in a new one",
        ),
        Advice(
            "judge",
            "probe",
            spec.judge,
            f"on {subject.shape.n_rows:,} rows irrelevant features get importance by chance, and "
            "`positive` keeps them all; the probe asks them to beat an irrelevant one again and "
            "again (it is cautious: read the ranking too)",
        ),
    ]


def _alpha(subject: Subject) -> Advice:
    spec, p = subject.spec, subject.shape.n_candidates
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
