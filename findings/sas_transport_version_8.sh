#!/bin/bash
# pandas: read_sas refuses the SAS transport files (.xpt) that pyreadstat writes by default, which are
# of version 8; it reads those of version 5 alone.
#
# One would guess that a reader named for the format reads what today's writers make of it, or says
# that it is another version. It says that the header is not that of an XPORT file.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check pandas==3.0.0 pyreadstat==1.3.7
cat > "$folder/try.py" <<'PYTHON'
import sys

import pandas as pd
import pyreadstat

print("pandas", pd.__version__, "pyreadstat", pyreadstat.__version__)
path = f"{sys.argv[1]}/t.xpt"
frame = pd.DataFrame({"dose": [1.5, 2.0, 3.0], "arm": ["a", "b", "a"]})
print("guessed: both read 3 rows")
seen = []
for how in ({}, {"file_format_version": 5}):
    pyreadstat.write_xport(frame, path, **how)
    try:
        found = f"{len(pd.read_sas(path, format='xport'))} rows"
    except ValueError as error:
        found = str(error)
    print("seen:", how or "by default", "-", found, "-", len(pyreadstat.read_xport(path)[0]))
    seen.append(found)
sys.exit(seen != ["Header record is not an XPORT file.", "3 rows"])
PYTHON
"$folder/env/bin/python" "$folder/try.py" "$folder"
