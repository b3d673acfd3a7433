#!/bin/bash
# `pip install anndata "pandas>=3"` gives AnnData 0.12.6, which by default writes no table that has
# texts: each write raises, on HDF5 and on Zarr, as pandas 3 holds all texts as nullable strings. One
# would guess that row ids and labels can be written, as under pandas 2.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/run.py" <<'PY'
import sys, warnings
warnings.simplefilter("ignore")
import anndata, numpy, pandas
obs = pandas.DataFrame({"state": ["ill", "well", "ill"]}, index=["a", "b", "c"])
cells = anndata.AnnData(numpy.eye(3, dtype="f4"), obs=obs)
try:
    cells.write_h5ad(f"{sys.argv[1]}/{pandas.__version__}.h5ad")
    found = "written"
except RuntimeError as error:
    found = str(error).split(",")[0]
print("anndata", anndata.__version__, "pandas", pandas.__version__, "guess: written, found:", found)
PY
for pandas in 2.3.3 3.0.0; do
  python3 -m venv "$folder/$pandas"
  "$folder/$pandas/bin/pip" install -q anndata==0.12.6 pandas==$pandas 2> /dev/null
  "$folder/$pandas/bin/python" "$folder/run.py" "$folder"
done | tee "$folder/found"
cat > "$folder/expected" <<'OUT'
anndata 0.12.6 pandas 2.3.3 guess: written, found: written
anndata 0.12.6 pandas 3.0.0 guess: written, found: `anndata.settings.allow_write_nullable_strings` is False
OUT
diff "$folder/expected" "$folder/found"
