#!/bin/bash
# `pip install cmapPy` brings pandas 3, under which cmapPy reads no GCT file, not even its own: it asks
# pandas.to_numeric for what that no longer has. One would guess that it reads what it wrote.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '#1.2\n1\t2\nName\tDescription\ts\tt\na\tx\t1.5\t2.5\n' > "$folder/t.gct"
cat > "$folder/run.py" <<'PY'
import sys, warnings
warnings.simplefilter("ignore")
import pandas
from importlib.metadata import version
from cmapPy.pandasGEXpress import parse_gct
try:
    found = parse_gct.parse(f"{sys.argv[1]}/t.gct").data_df.values.tolist()
except ValueError as error:
    found = error
print("cmapPy", version("cmapPy"), "pandas", pandas.__version__, "guess: [[1.5, 2.5]], found:", found)
PY
for pandas in 2.3.3 3.0.0; do
  python3 -m venv "$folder/$pandas"
  "$folder/$pandas/bin/pip" install -q cmapPy==4.0.1 pandas==$pandas numpy==2.4.6 2> /dev/null
  "$folder/$pandas/bin/python" "$folder/run.py" "$folder"
done | tee "$folder/found"
cat > "$folder/expected" <<'OUT'
cmapPy 4.0.1 pandas 2.3.3 guess: [[1.5, 2.5]], found: [[1.5, 2.5]]
cmapPy 4.0.1 pandas 3.0.0 guess: [[1.5, 2.5]], found: invalid error value specified
OUT
diff "$folder/expected" "$folder/found"
