"""The main loop of a run: its tally, its sampler, and the engine that drives them."""

from srs_ooc.engine import Book, Engine
from srs_ooc.evidence.steadiness import Steadiness
from srs_ooc.evidence.tally import Tally
from srs_ooc.executors import Executor
from srs_ooc.ledger import TreeWriter
from srs_ooc.ledger.trees import VALID
from srs_ooc.samplers.drawing import Drawing
from srs_ooc.samplers.leaders import Leaders
from srs_ooc.samplers.srs import SequentialRandomSubspace
from srs_ooc.seeds import Purpose, key_of
from srs_ooc.spec import RunSpec
from srs_ooc.state import Part

TALLY, STEADINESS = "tally", "steadiness"
"""Names under which a ledger keeps what was learnt of each item, and whether that is stable."""


class Search:
    """Iterations of one run, from where its book left them.

    Parameters
    ----------
    spec : RunSpec
        The run's identity.
    drawing : Drawing
        Of its subspaces.
    executor : Executor
        Grows them.
    book : Book
        Where it is committed to.
    n_features : int
        Features of the store.
    trees : TreeWriter, optional
        Where trees are kept, if the executor returns them.

    Attributes
    ----------
    tally : Tally
        What was learnt of each item.
    steadiness : Steadiness or None
        Of the ranking, where the verdict comes last.
    engine : Engine
        The loop.
    """

    def __init__(
        self,
        spec: RunSpec,
        drawing: Drawing,
        executor: Executor,
        book: Book,
        n_features: int,
        trees: TreeWriter | None = None,
    ) -> None:
        self.spec = spec
        self.tally = Tally(spec.n_items(n_features), wins=not spec.concludes)
        self.steadiness: Steadiness | None = None
        observers: dict[str, Part] = {TALLY: self.tally}
        if trees is not None:
            observers[VALID] = trees
        judge = None if spec.concludes else spec.make_judge()
        sampler: SequentialRandomSubspace | Leaders
        if judge is None:
            tie = key_of(spec.seed, Purpose.RANK_TIE)
            sampler = Leaders(drawing, self.tally, spec.keep, spec.round_size, tie)
            self.steadiness = observers[STEADINESS] = Steadiness(self.tally, tie)
        else:
            sampler = SequentialRandomSubspace(
                drawing, judge, self.tally, n_features, spec.round_size
            )
        self.engine = Engine(
            sampler,
            executor,
            book,
            seed=spec.seed,
            round_size=spec.round_size,
            observers=observers,
            judge=judge,
        )

    @property
    def is_stable(self) -> bool:
        """Whether the ranking was found stable."""
        return self.steadiness is not None and self.steadiness.since is not None
