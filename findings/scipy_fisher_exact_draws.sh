#!/bin/bash
# SciPy's fisher_exact is exact for 2 x 2 tables alone. Of 3 x 2 and larger ones it draws 9,999
# tables: another p-value each time, and none below 1 / 10,000.
#
# A genotype of three values against two classes is such a table. Of a feature whose exact p-value is
# 8e-12 it says 0.0001, and of 2,000 features Benjamini and Hochberg at 0.1 find none, as the first
# would need 0.00005. Nothing is said: the result has no field of how it was found.
#
# Python 3.11 or later; nothing is installed outside a temporary folder.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q scipy==1.17.1 numpy==2.4.6 2>log || { cat log; exit 1; }
cat >seen.py <<'END'
import math

import numpy as np
import scipy
from scipy import stats


def exact(table):
    """Sum the probabilities of all 3 x 2 tables of these margins that are no likelier."""
    rows, first = table.sum(axis=1).tolist(), int(table[:, 0].sum())
    all_ways = math.comb(sum(rows), first)

    def ways(a, b, c):
        return math.comb(rows[0], a) * math.comb(rows[1], b) * math.comb(rows[2], c)

    own = ways(*table[:, 0].tolist())
    total = sum(
        w
        for a in range(rows[0] + 1)
        for b in range(rows[1] + 1)
        if 0 <= first - a - b <= rows[2] and (w := ways(a, b, first - a - b)) <= own
    )
    return total / all_ways


strong = np.array([[30, 2], [10, 20], [3, 25]])
weak = np.array([[5, 3], [4, 8], [2, 6]])
print("SciPy", scipy.__version__)
several = [stats.fisher_exact(weak).pvalue for _ in range(20)]
print(f"3 x 2, {weak.tolist()}: exact {exact(weak):.4f};",
      "20 calls, the same p-value each time:", len(set(several)) == 1)
found = {stats.fisher_exact(strong).pvalue for _ in range(20)}
print(f"3 x 2, {strong.tolist()}: exact {exact(strong):.1e}; 20 calls: {sorted(map(float, found))}")
two = np.array([strong[0], strong[1:].sum(axis=0)])
print(f"2 x 2, {two.tolist()}: 20 calls, p-values:",
      {f"{stats.fisher_exact(two).pvalue:.1e}" for _ in range(20)})
rng = np.random.default_rng(0)
p_values = np.append(stats.fisher_exact(strong).pvalue, rng.uniform(size=1999))
passing = stats.false_discovery_control(p_values) <= 0.1
print("Benjamini and Hochberg at 0.1 among 2,000 features, it passes:", bool(passing[0]))
p_values[0] = exact(strong)
passing = stats.false_discovery_control(p_values) <= 0.1
print("with the exact p-value:", bool(passing[0]))
END
env/bin/python seen.py >seen
echo "One would guess: exact, so always the same, and as small as it is."
cat seen
cat >expected <<'END'
SciPy 1.17.1
3 x 2, [[5, 3], [4, 8], [2, 6]]: exact 0.3739; 20 calls, the same p-value each time: False
3 x 2, [[30, 2], [10, 20], [3, 25]]: exact 8.4e-12; 20 calls: [0.0001]
2 x 2, [[30, 2], [13, 45]]: 20 calls, p-values: {'1.7e-11'}
Benjamini and Hochberg at 0.1 among 2,000 features, it passes: False
with the exact p-value: True
END
diff expected seen
