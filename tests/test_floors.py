"""Imports only go down the floors of the design, save inside a sub-package."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "srs_ooc"

FLOORS = {
    0: ["base"],
    1: ["native"],
    2: ["trees"],
    3: ["evidence", "theory", "column_scores"],
    4: ["samplers", "store"],
    5: ["learners", "ingestion"],
    6: ["runs", "synthetic"],
    7: ["planning", "compaction"],
    8: ["results", "ensemble"],
    9: ["cli", "testing"],
    10: ["__main__"],
}
FLOOR_OF = {name: floor for floor, names in FLOORS.items() for name in names}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def part_of(module: str) -> str:
    return module.split(".")[1]


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(source: str, module: str, *, is_package: bool) -> list[str]:
    """Every srs_ooc module a source imports, at the top or inside a function."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            # `from srs_ooc import x` may name a module; deeper, the stem already names the part.
            found += (
                [f"{stem}.{alias.name}" for alias in node.names] if stem == "srs_ooc" else [stem]
            )
    return [name for name in found if name.split(".")[0] == "srs_ooc" and "." in name]


def climbs(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """The imports of a module that do not go down; a part without a floor is above all others."""
    own = part_of(module)
    return [
        name
        for name in imported_modules(source, module, is_package=is_package)
        if part_of(name) not in (own, "__version__")
        and FLOOR_OF.get(part_of(name), 99) >= FLOOR_OF[own]
    ]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_only_go_down(path: Path) -> None:
    module = module_name(path)
    assert part_of(module) in FLOOR_OF, f"{module} has no floor; add it to the table in this test"
    assert climbs(path.read_text(), module, is_package=path.name == "__init__.py") == []


def test_the_root_imports_no_part() -> None:
    source = (PACKAGE / "__init__.py").read_text()
    found = imported_modules(source, "srs_ooc", is_package=True)
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import srs_ooc.store.manifest",
        "from srs_ooc.store.manifest import Manifest",
        "from srs_ooc import store",
        "from .. import ledger",
        "from ..engine import run",
        "import srs_ooc.nowhere",
        "def f():\n    from srs_ooc.learners import trees",
    ],
)
def test_a_climb_is_seen(source: str) -> None:
    assert climbs(source, "srs_ooc.samplers.srs")


@pytest.mark.parametrize(
    "source",
    [
        "from srs_ooc.base.seeds import mix64",
        "from . import base",
        "from srs_ooc import __version__",
    ],
)
def test_a_descent_is_allowed(source: str) -> None:
    assert climbs(source, "srs_ooc.samplers.srs") == []
