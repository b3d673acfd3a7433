"""Sizes in bytes: one megabyte is 10**6 bytes everywhere, in options, reports and errors."""

MB = 1_000_000


def ceil_div(numerator: int, denominator: int) -> int:
    """Return ``numerator / denominator`` rounded up, for positive integers."""
    return -(-numerator // denominator)


def megabytes(n_bytes: int) -> float:
    """Return ``n_bytes`` in megabytes, rounded to one decimal."""
    return round(n_bytes / MB, 1)


def describe_nbytes(n_bytes: int) -> str:
    """Return a short human-readable size such as ``'163.2 MB'``."""
    for unit, size in (("TB", MB * MB), ("GB", 1000 * MB), ("MB", MB), ("kB", 1000)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes} bytes"


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, plural unless it is one."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
