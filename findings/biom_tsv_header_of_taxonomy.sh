#!/bin/bash
# `biom convert --to-tsv --header-key taxonomy` names a column of taxonomy even where the table has
# none: the header has one field more than any row, and biom-format itself reads the file back with a
# sample more, called "taxonomy", without counts. One would guess that the key is left out, or refused.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q biom-format==2.1.18 numpy==2.4.6 2> /dev/null
cd "$folder"
cat > make.py <<'PY'
import biom, numpy
from biom.util import biom_open
table = biom.Table(numpy.array([[1, 2, 3], [4, 5, 6.0]]), ["O1", "O2"], ["A", "B", "C"])
with biom_open("t.biom", "w") as file:
    table.to_hdf5(file, "test")
PY
venv/bin/python make.py
venv/bin/biom convert -i t.biom -o t.tsv --to-tsv --header-key taxonomy
venv/bin/biom convert -i t.tsv -o back.biom --to-hdf5 --table-type "OTU table"
{
    tr '\t' ' ' < t.tsv && echo
    for one in t back; do echo "$one:" $(venv/bin/biom table-ids -i $one.biom); done
} | tee found
cat > expected <<'OUT'
# Constructed from biom file
#OTU ID A B C taxonomy
O1 1.0 2.0 3.0
O2 4.0 5.0 6.0
t: A B C
back: A B C taxonomy
OUT
diff expected found
