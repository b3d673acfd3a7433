#!/bin/bash
# loompy writes names as UTF-8 and reads them as ASCII: each letter beyond is gone, without a word,
# so that two names may become one; and `&lt;` becomes `<`. One would guess the names that were
# written. h5py has them whole.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q loompy==3.0.8 h5py==3.16.0 numpy==2.2.6 2> /dev/null
cat > "$folder/run.py" <<'PY'
import h5py, importlib.metadata, loompy, numpy
path = __import__("sys").argv[1]
names = ["α-tubulin", "β-tubulin", "x&lt;y"]
rows, cells = {"Gene": numpy.array(names)}, {"CellID": numpy.array(["ü1", "c2"])}
loompy.create(path, numpy.arange(6.0).reshape(3, 2), rows, cells)
print("loompy", importlib.metadata.version("loompy"), "h5py", h5py.__version__)
with loompy.connect(path, "r") as opened:
    print("loompy:", [*map(str, opened.ra.Gene)], [*map(str, opened.ca.CellID)])
with h5py.File(path) as file:
    print("h5py:", *([*file[one].asstr()] for one in ("row_attrs/Gene", "col_attrs/CellID")))
PY
cat > "$folder/expected" <<'OUT'
loompy 3.0.8 h5py 3.16.0
loompy: ['-tubulin', '-tubulin', 'x<y'] ['1', 'c2']
h5py: ['α-tubulin', 'β-tubulin', 'x&lt;y'] ['ü1', 'c2']
OUT
"$folder/venv/bin/python" -W ignore "$folder/run.py" "$folder/t.loom" | tee "$folder/found"
diff "$folder/expected" "$folder/found"
