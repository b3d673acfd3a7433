#!/bin/bash
# GEOparse takes a series matrix of GEO, the file that most people download, and returns a series
# without samples: no error. One would guess that it is read, or refused. (It reads SOFT.)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
{
  printf '!Series_title\t"t"\n!Series_geo_accession\t"GSE2"\n\n'
  printf '!Sample_title\t"a"\t"b"\n!Sample_geo_accession\t"GSM1"\t"GSM2"\n'
  printf '!Sample_characteristics_ch1\t"age: 5"\t"age: 6"\n!series_matrix_table_begin\n'
  printf '"ID_REF"\t"GSM1"\t"GSM2"\n"p1"\t1.5\t2\n!series_matrix_table_end\n'
} > "$folder/GSE2_series_matrix.txt"
cat > "$folder/run.py" <<'PY'
import sys, GEOparse
from importlib.metadata import version
series = GEOparse.get_GEO(filepath=f"{sys.argv[1]}/GSE2_series_matrix.txt", silent=True)
print("GEOparse", version("GEOparse"), "guess: 2 samples, or an error, found:", len(series.gsms), "samples")
PY
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q GEOparse==2.0.4 six==1.17.0 pandas==2.3.3 2> /dev/null
"$folder/venv/bin/python" "$folder/run.py" "$folder" | tee "$folder/found"
cat > "$folder/expected" <<'OUT'
GEOparse 2.0.4 guess: 2 samples, or an error, found: 0 samples
OUT
diff "$folder/expected" "$folder/found"
