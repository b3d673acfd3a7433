#!/bin/bash
# pandas: a category of numbers (donors 1 to 4, ordered grades) that goes through Parquet comes back
# as plain int64, while one of texts stays a category, and Feather keeps both.
#
# One would guess that to_parquet keeps the dtype of a column, as it does for texts, and notes it as
# categorical in the file. Batches and donors that are numbers are then silently numbers again.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check pandas==3.0.0 pyarrow==23.0.0
cat > "$folder/try.py" <<'PYTHON'
import sys

import pandas as pd
import pyarrow
from pyarrow import parquet

print("pandas", pd.__version__, "pyarrow", pyarrow.__version__)
folder = sys.argv[1]
frame = pd.DataFrame(
    {
        "donor": pd.Categorical([1, 2, 3, 4] * 3),
        "grade": pd.Categorical([3, 1, 2] * 4, categories=[3, 1, 2], ordered=True),
        "batch": pd.Categorical(["1", "2", "3"] * 4),
    }
)
frame.to_parquet(f"{folder}/t.parquet")
frame.to_feather(f"{folder}/t.feather")
print("guessed: category category category, from both")
seen = {}
for kind, read in (("parquet", pd.read_parquet), ("feather", pd.read_feather)):
    found = read(f"{folder}/t.{kind}")
    seen[kind] = [str(kind) for kind in found.dtypes]
    print("seen:", kind, *seen[kind])
noted = parquet.read_schema(f"{folder}/t.parquet").pandas_metadata["columns"]
print("noted in the Parquet file:", *(one["pandas_type"] for one in noted[:3]))
expected = {"parquet": ["int64", "int64", "category"], "feather": ["category"] * 3}
sys.exit(seen != expected)
PYTHON
"$folder/env/bin/python" "$folder/try.py" "$folder"
