#!/bin/bash
# A cell that a SciPy sparse matrix holds twice is summed in the matrix' own dtype: counts of 100 and
# 100 in int8 are -56 once dense, though `sum()` says 200. One would guess 200 for both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q scipy==1.15.3 numpy==2.2.6 2> /dev/null
cat > "$folder/run.py" <<'PY'
import numpy, scipy, scipy.sparse
counts = scipy.sparse.csr_matrix((numpy.array([100, 100], "i1"), [0, 0], [0, 2]), shape=(1, 1))
print("scipy", scipy.__version__, "numpy", numpy.__version__)
print("guess: 200 200; sum:", counts.sum(), "dense:", counts.toarray()[0, 0])
PY
cat > "$folder/expected" <<'OUT'
scipy 1.15.3 numpy 2.2.6
guess: 200 200; sum: 200 dense: -56
OUT
"$folder/venv/bin/python" "$folder/run.py" | tee "$folder/found"
diff "$folder/expected" "$folder/found"
