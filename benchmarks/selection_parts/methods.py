"""The methods of the benchmark, by name."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

SOURCES = {".py", ".cpp", ".hpp"}
NO_RESULTS = {"cli", "report", "plan", "paper_theory", "predict", "synth", "store"}
"""Parts of the package whose changes leave the result of a run as it is."""


@dataclass(frozen=True)
class Method:
    """One method: ``package`` is whose version its results carry, "" for ours.

    ``cheap`` ones run before the others; ``most_features`` is what it can hold: it gets a table of
    the same problem so wide.
    """

    name: str
    label: str
    package: str
    cheap: bool = False
    most_features: int | None = None

    @property
    def is_ours(self) -> bool:
        """Whether it is a judge of ``srs-ooc``."""
        return not self.package

    def width(self, n_features: int) -> int:
        """Return how many of so many features it gets."""
        return min(n_features, self.most_features or n_features)

    def version(self, ours: str) -> str:
        """Return the version its results carry: that of its package, or ``ours``."""
        return ours if self.is_ours else f"{self.package}-{package_version(self.package)}"


METHODS = {
    method.name: method
    for method in (
        Method("decoy", "srs-ooc, judge decoy", ""),
        Method("probe", "srs-ooc, judge probe", ""),
        Method("ranksum", "rank sum + BH", "scipy", cheap=True),
        Method("ftest", "F + BH", "scikit-learn", cheap=True),
        Method("random_forest", "random forest, top 20", "scikit-learn"),
        Method("lasso", "lasso", "scikit-learn"),
        Method("knockoffs", "knockoffs, p <= 1,000", "knockpy", most_features=1000),
        Method("lightgbm", "LightGBM, top 20", "lightgbm"),
        Method("mutual_info", "mutual information, top 20", "scikit-learn"),
        Method("extra_trees", "extra trees, top 20", "scikit-learn"),
        Method("boruta", "Boruta, 20 rounds of 500 trees", "Boruta"),
    )
}


def package_version(package: str) -> str:
    """Return the version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        raise SystemExit(
            f"expected the package {package}, found none. Install the extra `bench`, or leave its "
            "methods out with --methods."
        ) from None


def version_of_ours() -> str:
    """Return the version of the package and a hash of those of its sources that decide results."""
    spec = find_spec("srs_ooc")
    if spec is None or spec.origin is None:
        raise SystemExit("expected srs-ooc to be installed, found none")
    folder = Path(spec.origin).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder)
        if path.suffix in SOURCES and place.parts[0] not in NO_RESULTS:
            digest.update(str(place).encode() + path.read_bytes())
    return f"{package_version('srs-ooc')}-{digest.hexdigest()[:8]}"


def passes(methods: Sequence[Method]) -> list[list[Method]]:
    """Return the methods in the order of work: ours, the cheap peers, then each dear one."""
    ours = [method for method in methods if method.is_ours]
    cheap = [method for method in methods if method.cheap]
    dear = [[method] for method in methods if not method.is_ours and not method.cheap]
    return [group for group in (ours, cheap, *dear) if group]
