"""What identifies a run (law 4): its options as settled, and the digests of what it works on."""

from dataclasses import dataclass, replace
from typing import Any, Self

from srs_ooc.base.errors import RunError
from srs_ooc.base.options import Choice, Option, Params, Text, Whole, option
from srs_ooc.evidence.judges import NOT_ADJUSTED, Judge, PositiveJudge, ProbeJudge, TestsJudge
from srs_ooc.learners.tree_learner import TREE, TreeParams, learner_named, learners
from srs_ooc.runs.inputs import Inputs
from srs_ooc.samplers.base import Method, method_names, method_of, methods
from srs_ooc.store.arrays import OWN

JUDGES: dict[str, type[Judge]] = {
    "probe": ProbeJudge,
    "positive": PositiveJudge,
    "tests": TestsJudge,
    "none": Judge,
}
"""Each judge by its name."""
NOT_GIVEN = {
    "store": "", "excluded": "none", "rows": "all", "validation": "none", "null_model": "none",
    "target": OWN,
}  # fmt: skip
"""What the identity has digests of (store, files, a null model, an added target), where none is."""

_OFTEN_NOT = ("validation", "null_model", "target")
"""Those that the identity has only where they were given."""


class RunParams(Params):
    """Options that every run has; ``subspace_size`` is q of the paper.

    Attributes
    ----------
    method : str
        How subspaces are chosen.
    subspace_size : int
        Features in memory at a time, or 'max' for all the cap holds.
    judge : str
        Test of relevance: a final verdict by tests of features alone and beside others
        (docs/evidence.md), the paper's probe, or any positive importance; none for a method that
        only ranks.
    seed : int
        Everything random follows from it.
    round_size : int
        Iterations between updates of the kept features; 1 is the paper's.
    """

    method: str = option(Choice(method_names()), default="srs")
    subspace_size: int = option(
        Text(),
        default=0,
        default_text="5% of the features, at least 100, within the cap; with --method less twice "
        "their square root; with rase room for all subspaces of a model",
        metavar="Q",
        flags=("--q",),
    )
    judge: str = option(
        Choice(tuple(JUDGES)),
        default_text="tests; probe with its own options or --save-trees; none with --method "
        "prs or rase",
    )
    seed: int = option(Whole(0, 2**64 - 1), default=0, metavar="SEED")
    round_size: int = option(Whole(1), default=1, metavar="N")


def declared() -> dict[str, Option]:
    """Return every option of a run's identity, of whatever part, by name."""
    parts: list[type[Params]] = [RunParams, *(method for _, method in methods())]
    parts += [*JUDGES.values(), *learners()]
    return {name: option for part in parts for name, option in part.options().items()}


@dataclass(frozen=True)
class RunSpec:
    """The identity of a run: two runs with equal specs have equal results.

    Attributes
    ----------
    store : str
        Fingerprint of the store.
    excluded, rows, validation : str
        Digests of the excluded features, of the rows, and of those that are held out.
    null_model : str
        Digest of what covariates say of the rows, where features are adjusted for some.
    target : str
        Name and digest of a target that was added to the store, where it is not its own.
    run : RunParams
        What every run has.
    sampler, learner, judging : Params
        The method, what is fitted on each subspace, and the judge, each with its options.
    """

    store: str
    excluded: str
    rows: str
    run: RunParams
    sampler: Method
    learner: TreeParams
    judging: Judge
    validation: str = NOT_GIVEN["validation"]
    null_model: str = NOT_GIVEN["null_model"]
    target: str = OWN

    def to_json(self) -> dict[str, Any]:
        """Return the spec as a ledger keeps it: JSON-ready values, all options side by side."""
        own = {"store": self.store, "excluded": self.excluded, "rows": self.rows}
        for name in _OFTEN_NOT:
            if getattr(self, name) != NOT_GIVEN[name]:
                own[name] = getattr(self, name)
        return own | self.values() | dict(self.judging.versions)

    def values(self) -> dict[str, Any]:
        """Return every option by name, as settled."""
        parts = self.run, self.sampler, self.learner, self.judging
        return {name: value for part in parts for name, value in part.values().items()}

    @classmethod
    def from_json(cls, record: Any) -> Self:
        """Return the spec that :meth:`to_json` wrote.

        Raises
        ------
        RunError
            If its fields are not those of a spec, or its verdict is of another version or judge.
        UsageError
            If its method is not installed.
        """
        try:
            run = RunParams.restored(record)
            spec = cls(
                store=record["store"],
                excluded=record["excluded"],
                rows=record["rows"],
                run=run,
                sampler=method_of(run.method).restored(record),
                learner=learner_named(record.get("model", TREE)).restored(record),
                judging=JUDGES[run.judge].restored(record),
                **{name: record.get(name, NOT_GIVEN[name]) for name in _OFTEN_NOT},
            )
        except (TypeError, ValueError, KeyError) as error:
            raise RunError(f"the run's identity in ledger.sqlite is damaged: {error!r}.") from error
        for name, version in spec.judging.versions.items():
            if record.get(name, 1) != version:
                raise RunError(
                    f"expected a run of version {version} of its {name}, found version "
                    f"{record.get(name, 1)!r}. Use the srs-ooc version that began it, or start "
                    "the run again in another folder."
                )
        return spec

    def with_seed(self, seed: int) -> Self:
        """Return the same with another seed."""
        return replace(self, run=replace(self.run, seed=seed))

    def on_rows(self, inputs: Inputs) -> Self:
        """Return the same on the rows of ``inputs``."""
        return replace(self, rows=inputs.digests["rows"], null_model=inputs.null_digest)

    @property
    def subspace_size(self) -> int:
        """The paper's q."""
        return self.run.subspace_size

    @property
    def alpha(self) -> str:
        """Share of the subspace held for kept features; 0 for a method that holds none."""
        return str(getattr(self.sampler, "alpha", "0"))

    @property
    def draw_block(self) -> int:
        """Neighbours on disk that are drawn together; 1 for a method that draws one by one."""
        return int(getattr(self.sampler, "draw_block", 1))

    @property
    def method(self) -> type[Method]:
        """The method by which subspaces are chosen."""
        return type(self.sampler)

    @property
    def min_draws(self) -> int:
        """Draws that the probe asks for to be exceeded, where it judges; else its default."""
        if isinstance(self.judging, ProbeJudge):
            return self.judging.probe_min_draws
        return int(ProbeJudge.options()["probe_min_draws"].default)

    @property
    def concludes(self) -> bool:
        """Whether the verdict comes last, after a closing stage."""
        return isinstance(self.judging, TestsJudge)

    @property
    def adjusts_for(self) -> tuple[str, ...]:
        """Names of the covariates that features are adjusted for."""
        names = getattr(self.judging, "adjust", NOT_ADJUSTED)
        return () if names == NOT_ADJUSTED else tuple(names.split(","))

    @property
    def fdr(self) -> str:
        """Level of the final verdict, as decimal text; only a run that concludes has one."""
        assert isinstance(self.judging, TestsJudge)
        return self.judging.fdr

    @property
    def n_columns(self) -> int:
        """Columns of a block: those of a subspace, and the probe where there is one."""
        return self.subspace_size + isinstance(self.judging, ProbeJudge)
