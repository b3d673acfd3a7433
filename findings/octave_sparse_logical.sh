#!/bin/bash
# Octave writes a sparse logical matrix to a .mat file that neither it nor SciPy can read right.
#
# MATLAB 5's format has a class for sparse matrices. Octave 7.3.0 gives a sparse logical one the class
# of bytes, so that the indices of its rows, which come first, are taken for its cells. One would
# guess that `save -v6` and `load` give it back. Where all cells are stored other values come, without
# a word; where not, an error. A sparse matrix of doubles is written right.
#
# Debian 12 on x86-64 with octave 7.3.0 (`apt-get install octave`); nothing is installed outside a
# temporary folder.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
command -v octave-cli >/dev/null || { echo "octave-cli: not installed"; exit 1; }
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q scipy==1.15.3 numpy==2.2.6 2>/dev/null
cd "$folder"
cat >write.m <<'M'
disp(version)
T = sparse(logical(ones(2, 2)));
D = sparse(ones(2, 2));
save -v6 logical.mat T
save -v6 double.mat D
clear T D
load logical.mat
load double.mat
printf("octave, logical: %s, double: %s\n", mat2str(double(full(T))), mat2str(full(D)));
M
cat >read.py <<'PY'
import scipy.io
logical, double = (scipy.io.loadmat(f"{name}.mat")[name[0].upper().replace("L", "T")]
                   for name in ("logical", "double"))
print("scipy, logical:", logical.tolist(), "double:", double.toarray().tolist())
PY
{ octave-cli --quiet write.m 2>/dev/null || true; "$folder/venv/bin/python" read.py; } | tee found
cat >expected <<'OUT'
7.3.0
octave, logical: [0 0;1 1], double: [1 1;1 1]
scipy, logical: [[0, 0], [1, 1]] double: [[1.0, 1.0], [1.0, 1.0]]
OUT
diff expected found
