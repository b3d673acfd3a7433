#!/bin/bash
# cmapPy writes GCT with four digits after the point, and biom-format BIOM 1.0 (JSON) with six, both
# by default: a share of 0.00000025 becomes 0. One would guess that a table that is saved and read
# again is the same. cmapPy also takes a cell -666 of a GCT matrix for missing, not only of metadata.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/run.py" <<'PY'
import json, sys, warnings
warnings.simplefilter("ignore")
import biom, cmapPy, numpy, pandas
from importlib.metadata import version
from cmapPy.pandasGEXpress import GCToo, parse_gct, write_gct
values = numpy.array([[2.5e-7, 0.00012345], [1.0, 2.0]])
rows, columns = pandas.Index(["a", "b"]), pandas.Index(["s", "t"])
about = pandas.DataFrame({"k": ["x", "y"]})
table = GCToo.GCToo(
    data_df=pandas.DataFrame(values, rows, columns),
    row_metadata_df=about.set_axis(rows), col_metadata_df=about.set_axis(columns),
)
write_gct.write(table, f"{sys.argv[1]}/t.gct")
found = parse_gct.parse(f"{sys.argv[1]}/t.gct").data_df.loc["a"].tolist()
print("cmapPy", version("cmapPy"), "guess: 2.5e-07 0.00012345, found:", *(f"{v:.4f}" for v in found))
text = json.loads(biom.Table(values, rows, columns).to_json("test"))
print("biom-format", version("biom-format"), "guess: 2.5e-07 0.00012345, found:", *(c[2] for c in text["data"][:2]))
with open(f"{sys.argv[1]}/u.gct", "w") as file:
    file.write("#1.2\n1\t2\nName\tDescription\ts\tt\na\tx\t-666\t-665\n")
found = parse_gct.parse(f"{sys.argv[1]}/u.gct").data_df.loc["a"].tolist()
print("cmapPy", version("cmapPy"), "guess: -666.0 -665.0, found:", *found)
PY
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q cmapPy==4.0.1 biom-format==2.1.18 pandas==2.3.3 numpy==2.4.6 2> /dev/null
"$folder/venv/bin/python" "$folder/run.py" "$folder" 2> /dev/null | tee "$folder/found"
cat > "$folder/expected" <<'OUT'
cmapPy 4.0.1 guess: 2.5e-07 0.00012345, found: 0.0000 0.0001
biom-format 2.1.18 guess: 2.5e-07 0.00012345, found: 0.0 0.000123
cmapPy 4.0.1 guess: -666.0 -665.0, found: nan -665.0
OUT
diff "$folder/expected" "$folder/found"
