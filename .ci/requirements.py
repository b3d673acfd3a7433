"""Print what the build, the package and its tests need, a requirement a line (see the Makefile)."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]


def of_extra(name: str) -> Iterator[str]:
    """Yield the requirements of an extra; of those it names in turn, theirs."""
    for requirement in EXTRAS[name]:
        inner = re.fullmatch(rf"{PROJECT['project']['name']}\[(.*)\]", requirement)
        if inner is None:
            yield requirement
        else:
            for other in inner[1].split(","):
                yield from of_extra(other)


if __name__ == "__main__":
    build = [*PROJECT["build-system"]["requires"], "cmake", "ninja"]
    print("\n".join([*build, *PROJECT["project"]["dependencies"], *of_extra("test")]))
