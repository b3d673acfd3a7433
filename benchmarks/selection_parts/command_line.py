"""What the command lines of benchmarks share."""

import sys


def chosen(option: str, names: list[str] | None, known: list[str]) -> list[str]:
    """Return the names given, or all."""
    unknown = sorted(set(names or ()) - set(known))
    if unknown:
        raise SystemExit(f"{option}: expected {', '.join(known)}; found {', '.join(unknown)}")
    return names or known


def said(text: str) -> None:
    """Tell how the work goes."""
    print(text, file=sys.stderr, flush=True)
