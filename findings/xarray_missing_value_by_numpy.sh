#!/bin/bash
# Whether xarray masks a float32 cell whose `missing_value` is written as float64 depends on NumPy:
# with NumPy 1 it is NaN, with NumPy 2 the same xarray gives -9999.900390625 as a measurement.
# One would guess NaN with both: the file says which number means "missing".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/run.py" <<'PY'
import numpy, xarray
cells = numpy.array([1.5, -9999.9], "f4")
packed = xarray.Variable("row", cells, {"missing_value": numpy.float64(-9999.9)})
found = xarray.conventions.decode_cf_variable("x", packed).values
print("xarray", xarray.__version__, "numpy", numpy.__version__, "guess: [1.5, nan], found:", found.tolist())
PY
for numpy in 1.26.4 2.2.6; do
  python3 -m venv "$folder/$numpy"
  "$folder/$numpy/bin/pip" install -q xarray==2025.6.1 numpy==$numpy pandas==2.3.3 2> /dev/null
  "$folder/$numpy/bin/python" "$folder/run.py"
done | tee "$folder/found"
cat > "$folder/expected" <<'OUT'
xarray 2025.6.1 numpy 1.26.4 guess: [1.5, nan], found: [1.5, nan]
xarray 2025.6.1 numpy 2.2.6 guess: [1.5, nan], found: [1.5, -9999.900390625]
OUT
diff "$folder/expected" "$folder/found"
