"""The tables that the pins are of: the same cells on every machine, by integer arithmetic alone."""

from dataclasses import dataclass, field

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def whole_numbers(key, shape, below):
    """Whole numbers in [0, below) by SplitMix64: no generator of a library, which may change."""
    n = int(np.prod(shape))
    x = (np.arange(1, n + 1, dtype=np.uint64) + np.uint64(key << 32)) * _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return (x % np.uint64(below)).astype(np.int64).reshape(shape)


def quarters(key, shape):
    """Numbers in quarters, about bell-shaped: exact in float32, and in decimals."""
    return whole_numbers(key, (6, *shape), 81).sum(axis=0) / 4 - 60


@dataclass
class Table:
    """Columns by name, each a list of texts; an empty text is a missing cell."""

    columns: dict[str, list[str]] = field(default_factory=dict)

    @property
    def n_rows(self):
        return len(next(iter(self.columns.values())))

    def add(self, name, cells):
        self.columns[name] = [cell if isinstance(cell, str) else f"{cell:g}" for cell in cells]

    def text(self, separator=","):
        rows = [self.columns, *zip(*self.columns.values(), strict=True)]
        return "".join(separator.join(row) + "\n" for row in rows)

    def without(self, *names):
        return Table({name: cells for name, cells in self.columns.items() if name not in names})

    def transposed(self, id_name):
        """Text with a row for each column but the ids, which become the header."""
        rows = [["name", *self.columns[id_name]]]
        rows += [[name, *cells] for name, cells in self.columns.items() if name != id_name]
        return "".join(",".join(row) + "\n" for row in rows)


def small_table(n_rows=40, n_numbers=12):
    """Every kind of column, missing cells, and columns for every role."""
    table = Table()
    table.add("id", [f"sample-{row:03}" for row in (whole_numbers(1, (n_rows,), 7) + 1).cumsum()])
    numbers = quarters(2, (n_numbers, n_rows))
    gone = whole_numbers(3, (n_numbers, n_rows), 12) == 0
    for i in range(n_numbers):
        cells = [f"{value:g}" for value in numbers[i]]
        if i % 3 == 0:
            cells = ["" if lost else cell for cell, lost in zip(cells, gone[i], strict=True)]
        table.add(f"x{i}", cells)
    table.add("count", whole_numbers(4, (n_rows,), 9))
    table.add("flag", whole_numbers(5, (n_rows,), 2))
    table.add("constant", np.full(n_rows, 3))
    names = ["north", "south", "west", "", "östlich"]
    table.add("region", [names[i] for i in whole_numbers(6, (n_rows,), 5)])
    table.add("weight", 1 + whole_numbers(7, (n_rows,), 8) / 4)
    table.add("batch", ["ab"[i] for i in whole_numbers(8, (n_rows,), 2)])
    table.add("plate", [f"p{i}" for i in whole_numbers(9, (n_rows,), 3)])
    table.add("family", [f"family{i // 2}" for i in range(n_rows)])
    table.add("amount", numbers[0] + numbers[1] / 2)
    score = numbers[0] - numbers[2]
    table.add("label", ["high" if s > 12 else "middle" if s > -12 else "low" for s in score])
    return table


ROLES = ("id", "region", "weight", "batch", "plate", "family", "amount", "label")
"""Columns of :func:`small_table` that a table of numbers alone has no place for."""


def matrix(n_rows=40):
    """The numbers of the small table, and whole numbers as target in the last column."""
    columns = small_table(n_rows).without(*ROLES).columns.values()
    cells = [[float(cell) if cell else np.nan for cell in column] for column in columns]
    classes = whole_numbers(10, (n_rows,), 3)
    return np.column_stack([*map(np.array, cells), classes])


def counts(n_rows=40, n_columns=30):
    """Whole numbers, mostly 0, and a target in the last column."""
    cells = whole_numbers(11, (n_rows, n_columns), 6)
    cells = np.where(whole_numbers(12, cells.shape, 4) == 0, cells, 0)
    return np.column_stack([cells, 1 + whole_numbers(13, (n_rows,), 2)]).astype(np.float64)


def run_table(n_rows=80, n_features=300, *, missing=False, categories=False):
    """A table to select from: the first four features decide the label and the amount.

    A fifth is a near copy of the first. ``missing`` empties cells of every other feature,
    ``categories`` makes every fifth feature one of texts.
    """
    values = quarters(20, (n_features, n_rows))
    noise = quarters(21, (n_rows,))
    values[4] = values[0] + whole_numbers(22, (n_rows,), 9) - 4
    amount = 2 * values[0] + 2 * values[1] - 2 * values[2] + values[3] + noise / 2
    gone = whole_numbers(23, values.shape, 15) == 0
    table = Table()
    table.add("id", [f"r{row}" for row in range(n_rows)])
    for i in range(n_features):
        cells = [f"{value:g}" for value in values[i]]
        if categories and i % 5 == 1:
            cells = ["abcdef"[int(value // 16) % 6] for value in values[i]]
        if missing and i % 2 == 0:
            cells = ["" if lost else cell for cell, lost in zip(cells, gone[i], strict=True)]
        table.add(f"g{i}", cells)
    table.add("weight", 1 + whole_numbers(24, (n_rows,), 8) / 4)
    table.add("batch", ["ab"[i] for i in whole_numbers(25, (n_rows,), 2)])
    table.add("family", [f"family{i // 2}" for i in range(n_rows)])
    table.add("amount", amount)
    # Rows of a family have one label, so that whole families may trade places.
    means = amount.reshape(-1, 2).mean(axis=1).repeat(2)
    table.add("family_label", ["yes" if mean > np.median(means) else "no" for mean in means])
    table.add("grade", ["c" if a > 40 else "b" if a > -40 else "a" for a in amount])
    table.add("label", ["yes" if a > np.median(amount) else "no" for a in amount])
    return table
