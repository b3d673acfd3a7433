#!/bin/bash
# Which cells of a netCDF file are missing depends on the reader. netCDF4-python masks cells that
# were never written, those outside `valid_range`, and the `missing_value` of unsigned bytes; xarray
# gives 9.96921e+36, 200 and 255 as measurements. One would guess the same cells with both.
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
    file.createVariable("unwritten", "f4", "row")[:2] = [1, 2]
    file.createVariable("ranged", "i2", "row").valid_range = numpy.array([0, 100], "i2")
    file["ranged"].set_auto_mask(False)
    file["ranged"][:] = [1, 2, 200]
    cells = file.createVariable("bytes", "i1", "row")
    cells.setncatts({"_Unsigned": "true", "missing_value": numpy.int8(-1)})
    cells.set_auto_maskandscale(False)
    cells[:] = [1, 2, -1]
print("xarray", xarray.__version__, "netCDF4", netCDF4.__version__, "numpy", numpy.__version__)
found = xarray.open_dataset(path)
with netCDF4.Dataset(path) as file:
    for name in ("unwritten", "ranged", "bytes"):
        print(name, "netCDF4-python:", file[name][:].tolist(), "xarray:", found[name].values.tolist())
PY
cat > "$folder/expected" <<'OUT'
xarray 2025.6.1 netCDF4 1.7.2 numpy 2.2.6
unwritten netCDF4-python: [1.0, 2.0, None] xarray: [1.0, 2.0, 9.969209968386869e+36]
ranged netCDF4-python: [1, 2, None] xarray: [1, 2, 200]
bytes netCDF4-python: [1, 2, None] xarray: [1.0, 2.0, 255.0]
OUT
"$folder/venv/bin/python" "$folder/run.py" "$folder/t.nc" | tee "$folder/found"
diff "$folder/expected" "$folder/found"
