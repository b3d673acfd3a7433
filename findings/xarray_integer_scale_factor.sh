#!/bin/bash
# xarray drops the fraction of floats whose `scale_factor` is an integer: 1.75 times 2 becomes 2.
# One would guess 3.5, as netCDF4-python reads the same file. With a `_FillValue` it raises instead.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q xarray==2025.6.1 netCDF4==1.7.2 numpy==2.2.6 pandas==2.3.3 2> /dev/null
cat > "$folder/run.py" <<'PY'
import netCDF4, numpy, xarray
path = __import__("sys").argv[1]
with netCDF4.Dataset(path, "w") as file:
    file.createDimension("row", 3)
    for name, fill in (("x", None), ("filled", -9)):
        cells = file.createVariable(name, "f4", "row", fill_value=fill)
        cells.scale_factor = numpy.int32(2)
        cells.set_auto_maskandscale(False)
        cells[:] = [1.75, 2.5, 3 if fill is None else fill]
print("xarray", xarray.__version__, "netCDF4", netCDF4.__version__, "numpy", numpy.__version__)
with netCDF4.Dataset(path) as file:
    print("guess: [3.5, 5.0, 6.0]; netCDF4-python:", file["x"][:].tolist())
found = xarray.open_dataset(path)
print("xarray:", found["x"].values.tolist(), found["x"].dtype)
try:
    print("with _FillValue:", found["filled"].values.tolist())
except ValueError as error:
    print("with _FillValue:", error)
PY
cat > "$folder/expected" <<'OUT'
xarray 2025.6.1 netCDF4 1.7.2 numpy 2.2.6
guess: [3.5, 5.0, 6.0]; netCDF4-python: [3.5, 5.0, 6.0]
xarray: [2, 4, 6] int32
with _FillValue: cannot convert float NaN to integer
OUT
"$folder/venv/bin/python" "$folder/run.py" "$folder/t.nc" | tee "$folder/found"
diff "$folder/expected" "$folder/found"
