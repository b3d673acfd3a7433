"""Theorem I.1 of the supplement of RFEST: how many fresh rows sensitivity asks for.

A classifier of error eps labels rows by features of a product distribution. Altering (flipping) a
relevant feature makes it wrong with probability at least I_min - rho eps, an irrelevant one with at
most rho eps. Where their middle is apart from both by tau > 0, Hoeffding's bound for each feature
and the union bound over all of them give the size of the sample.

As printed the theorem allows 2 rho eps = I_min, for which tau is 0 and nothing follows: the example
that ends the supplement, consensus on three bits and a classifier that always says no, is such a
case, and no sample distinguishes its features. The proof holds where I_min > 2 rho eps.
"""

from math import ceil, log


def margin(min_influence: float, rho: float, error: float) -> float:
    """Return tau = I_min / 2 - rho eps.

    Parameters
    ----------
    min_influence : float
        I_min: the least probability, over relevant features, that flipping one changes the label.
    rho : float
        The largest ratio, over features, of the probabilities of its two values.
    error : float
        eps: the classifier's true error.
    """
    return min_influence / 2 - rho * error


def sample_size(
    n_features: int, delta: float, min_influence: float, rho: float, error: float
) -> int:
    """Return t = ln(n / delta) / (2 tau^2), rounded up.

    With that many rows, drawn from the distribution and not seen in training, all relevant features
    have a higher accuracy lost than all irrelevant ones with probability at least ``1 - delta``.

    Raises
    ------
    ValueError
        If 2 rho eps is not below I_min: the theorem says nothing then.
    """
    tau = margin(min_influence, rho, error)
    if not tau > 0:
        raise ValueError(
            f"expected an error below I_min / (2 rho) = {min_influence / (2 * rho):.4g}, found "
            f"{error:.4g}"
        )
    return ceil(log(n_features / delta) / (2 * tau * tau))
