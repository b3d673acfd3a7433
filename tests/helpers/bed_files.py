"""A table of genotypes, and PLINK's three files of one."""

import math
from pathlib import Path

import numpy as np

BITS = {2.0: 0, 1.0: 2, 0.0: 3}
RNG = np.random.default_rng(8)
N_ROWS, N_VARIANTS = 23, 40
DOSAGES = RNG.integers(0, 3, (N_ROWS, N_VARIANTS)).astype(float)
DOSAGES[RNG.random(DOSAGES.shape) < 0.1] = math.nan
NAMES = [f"rs{j}" for j in range(N_VARIANTS)]
STATUS = [("2", "1")[i % 2] for i in range(N_ROWS)]


def write_bed(folder: Path, dosages=DOSAGES, names=NAMES, fam=None, name="g") -> Path:
    """Write the three files of a table; return the .bed."""
    n_rows, n_variants = dosages.shape
    bits = np.zeros((n_variants, 4 * ((n_rows + 3) // 4)), np.uint8)
    for j, column in enumerate(dosages.T):
        bits[j, :n_rows] = [BITS.get(dosage, 1) for dosage in column.tolist()]
    packed = (bits.reshape(n_variants, -1, 4) << np.array([0, 2, 4, 6])).sum(axis=2)
    (folder / f"{name}.bed").write_bytes(b"\x6c\x1b\x01" + packed.astype(np.uint8).tobytes())
    (folder / f"{name}.bim").write_text(
        "".join(f"7\t{one}\t0\t{100 + j}\tA\tACG\n" for j, one in enumerate(names))
    )
    lines = fam or [f"F{i // 2} I{i} 0 0 {1 + i % 2} {STATUS[i]}" for i in range(n_rows)]
    (folder / f"{name}.fam").write_text("".join(f"{line}\n" for line in lines))
    return folder / f"{name}.bed"
