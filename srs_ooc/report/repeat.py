"""How to repeat a run: commands, versions, fingerprints."""

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from shlex import quote
from typing import Any

from srs_ooc import __version__
from srs_ooc.base.options import Choice, Flag, Kind, WordOrFile
from srs_ooc.report.source import Source
from srs_ooc.runs.settling import declared

LIBRARIES = ("numpy", "scikit-learn", "numcodecs", "google-crc32c")


@dataclass(frozen=True)
class Repeat:
    """What it takes to repeat a run.

    Attributes
    ----------
    commands : list of str
        To paste into a shell.
    notes : list of str
        What the commands do not hold.
    versions, fingerprints : dict of str to str
        By name. Versions are those that wrote the report.
    """

    commands: list[str]
    notes: list[str]
    versions: dict[str, str]
    fingerprints: dict[str, str]


def repeat_of(source: Source) -> Repeat:
    """Return how to repeat a run."""
    store, run = quote(str(source.store.place)), quote(str(source.ledger.run.absolute()))
    name = source.manifest.source.get("name")
    table = f"the table {name}" if name else "a table in memory"
    again = quote(f"{source.ledger.run.name.removesuffix('.run')}-again.run")
    options, notes = _options(source)
    given = " ".join(
        [f"--iterations {source.reading.n_iterations}", f"--memory-mb {source.status.memory_mb}"]
    )
    found = ", ".join(f"{name}: {value}" for name, value in source.manifest.inferred.items())
    notes.insert(
        0, f"The store was made of {table}" + (f" ({found})." if found else ".") + " A store "
        "made of the same table with the same options has the same fingerprint."
    )  # fmt: skip
    return Repeat(
        [
            f"srs-ooc run {store} --out {again} {given} {options}",
            f"srs-ooc features {run} --selected --csv",
        ],
        notes,
        _versions(),
        {"store": source.store.fingerprint, **_digests(source)},
    )


def _options(source: Source) -> tuple[str, list[str]]:
    """Return the settled options as the command line takes them, and what they do not say."""
    said, notes = [], []
    kinds = {name: option.kind for name, option in declared().items()}
    for name, value in source.spec.values().items():
        flag = "--" + name.replace("_", "-")
        if value is None:
            continue
        if isinstance(kinds[name], WordOrFile) and value not in _words(kinds[name]):
            said.append(f"{flag} FILE")
            notes.append(f"{flag} names a file: {value}.")
        elif isinstance(kinds[name], Flag):
            said.append(flag if value else f"--no-{flag[2:]}")
        else:
            said.append(f"{flag} {quote(str(value))}")
    for flag, digest in _files(source).items():
        said.append(f"{flag} FILE")
        notes.append(f"{flag} names {digest}.")
    return " ".join(said), notes


def _words(kind: Kind) -> tuple[str, ...]:
    return kind.words if isinstance(kind, WordOrFile | Choice) else ()


def _files(source: Source) -> dict[str, str]:
    """Return the options that named files, and what was in them."""
    spec = source.spec
    given = {"--exclude": spec.excluded, "--rows": spec.rows, "--validation-rows": spec.validation}
    return {flag: text for flag, text in given.items() if text not in ("none", "all")}


def _digests(source: Source) -> dict[str, str]:
    found: dict[str, Any] = {flag.lstrip("-"): text for flag, text in _files(source).items()}
    crc32 = source.manifest.source.get("crc32")
    if isinstance(crc32, int):
        found["table (CRC-32)"] = f"{crc32:08x}"
    return found


def _versions() -> dict[str, str]:
    found = {"srs-ooc": __version__, "Python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = "not installed"
    return found | {"system": f"{platform.system()} {platform.machine()}"}
