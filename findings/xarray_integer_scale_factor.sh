#!/bin/bash
# xarray drops the fraction of floats whose `scale_factor` is an integer: 1.75 times 2 becomes 2.
# A cell that `_FillValue` marks as missing becomes 0. One would guess 3.5 and NaN, as netCDF4-python
# reads the same file.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q xarray==2025.6.1 netCDF4==1.7.2 numpy==2.2.6 pandas==2.3.3 2> /dev/null
cat > "$folder/run.py" <<'PY'
import warnings
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
    for name in ("x", "filled"):
        print("guess, and netCDF4-python:", file[name][:].tolist())
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for name, cells in xarray.open_dataset(path).items():
        print("xarray:", cells.values.tolist(), cells.dtype)
PY
cat > "$folder/expected" <<'OUT'
xarray 2025.6.1 netCDF4 1.7.2 numpy 2.2.6
guess, and netCDF4-python: [3.5, 5.0, 6.0]
guess, and netCDF4-python: [3.5, 5.0, None]
xarray: [2, 4, 6] int32
xarray: [2, 4, 0] int32
OUT
"$folder/venv/bin/python" "$folder/run.py" "$folder/t.nc" | tee "$folder/found"
diff "$folder/expected" "$folder/found"
