"""What a computation of Section 4 is about: the scenario, p, q, r and alpha, checked."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import ShareLike, exact_share, floor_share

Scenario = Literal["chain", "clique", "marginal"]
SCENARIOS: tuple[Scenario, ...] = get_args(Scenario)
Alpha = ShareLike


def exact_alpha(alpha: Alpha) -> Fraction:
    """Return alpha as the exact number its decimal text says.

    Raises
    ------
    UsageError
        If alpha is no number or outside [0, 1].
    """
    try:
        return exact_share(alpha)
    except ValueError:
        raise UsageError(
            f"alpha: expected a number between 0 and 1, found {str(alpha)!r}; "
            "alpha is the share of the subspace held for features already found"
        ) from None


@dataclass(frozen=True)
class Setting:
    """One scenario of Section 4.2 with its sizes.

    Build it with :meth:`of`, which checks the ranges.

    Parameters
    ----------
    scenario : {'chain', 'clique', 'marginal'}
        How the relevant features depend on one another.
    n_features : int
        p, all features.
    subspace_size : int
        q, features in memory at once.
    n_relevant : int
        r, relevant features.
    alpha : Fraction
        Share of the subspace held for features already found; 0 is Random Subspace.
    """

    scenario: Scenario
    n_features: int
    subspace_size: int
    n_relevant: int
    alpha: Fraction

    @classmethod
    def of(
        cls,
        scenario: str,
        n_features: int,
        subspace_size: int,
        n_relevant: int,
        alpha: Alpha = 0,
    ) -> "Setting":
        """Return a checked setting.

        Raises
        ------
        UsageError
            If the scenario is unknown or a size is outside its range.
        """
        known = next((name for name in SCENARIOS if name == scenario), None)
        if known is None:
            raise UsageError(
                f"scenario: expected one of {', '.join(SCENARIOS)}, found {scenario!r}"
            )
        _check_size("n-features", n_features, None)
        _check_size("q", subspace_size, n_features)
        _check_size("n-relevant", n_relevant, n_features)
        return cls(known, n_features, subspace_size, n_relevant, exact_alpha(alpha))

    @property
    def n_held_max(self) -> int:
        """floor(alpha q), the most found features a subspace is given."""
        return floor_share(self.alpha, self.subspace_size)

    def n_held(self, n_found: int) -> int:
        """Return |R| = min(floor(alpha q), |F|) of Algorithm 1, step 2(a)."""
        return min(self.n_held_max, n_found)

    @property
    def n_findable(self) -> int:
        """The number of relevant features found after infinitely many iterations."""
        q, r = self.subspace_size, self.n_relevant
        if self.scenario == "chain":
            return min(q, r)
        if self.scenario == "clique":
            return r if r <= q else 0
        return r if r <= q or self.n_held_max < q else q

    def why_not(self, n_wanted: int) -> str | None:
        """Return why ``n_wanted`` features are never found, or None when they are."""
        found, q, r = self.n_findable, self.subspace_size, self.n_relevant
        if n_wanted <= found:
            return None
        if self.scenario == "clique":
            return f"a clique of {r} is seen only in a subspace holding all {r}; q is {q}"
        if self.scenario == "chain":
            return (
                f"feature {found + 1} of the chain is seen only beside the {found} before it; "
                f"q is {q}, so {found} of {r} are found and no more"
            )
        return (
            f"once {q} are found, alpha = {float(self.alpha):g} fills all q = {q} places with "
            f"found features: {q} of {r} are found and no more"
        )


def _check_size(name: str, value: int, limit: int | None) -> None:
    if value < 1 or (limit is not None and value > limit):
        found = f"{name}: found {value}"
        if limit is None:
            raise UsageError(f"{found}, expected at least 1")
        raise UsageError(f"{found}, expected 1 to {limit} (the number of features)")
