#!/bin/bash
# A sparse row of ARFF leaves out what is 0, or the first declared value. Of a text that is left out liac-arff makes '0', and of
# an attribute that is there twice the last value, without a word; Weka 3.6.14 has '*WEKA*DUMMY*STRING*FOR*STRING*ATTRIBUTES*'
# for the one and refuses the other. One would guess a missing value, and an error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q liac-arff==2.5.0 2> /dev/null
cat > "$folder/run.py" <<'PY'
import arff
head = "@relation r\n@attribute a string\n@attribute b {x,y}\n@attribute c numeric\n@data\n"
for row in ("{0 u, 1 y, 2 3}", "{2 3}", "{0 u, 2 4, 2 5}"):
    print(row, arff.loads(head + row + "\n")["data"])
PY
"$folder/env/bin/python" "$folder/run.py" | tee "$folder/found"
cat > "$folder/expected" <<'OUT'
{0 u, 1 y, 2 3} [['u', 'y', 3.0]]
{2 3} [['0', 'x', 3.0]]
{0 u, 2 4, 2 5} [['u', 'x', 5.0]]
OUT
diff "$folder/expected" "$folder/found"
