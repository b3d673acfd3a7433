#!/bin/bash
# `scanpy.read_10x_h5` leaves out all features that are no genes (antibodies, guides) by default,
# without a word, and turns whole counts of int32, as Cell Ranger writes them, into float32, so that
# 16777217 becomes 16777216. One would guess all features, and the counts that are in the file.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q scanpy==1.11.5 anndata==0.12.6 numpy==2.2.6 scipy==1.16.3 \
    pandas==2.3.3 h5py==3.15.1 2> /dev/null
cat > "$folder/run.py" <<'PY'
import h5py, numpy, scanpy
path = __import__("sys").argv[1]
with h5py.File(path, "w") as file:
    matrix = file.create_group("matrix")
    matrix["barcodes"] = numpy.array(["AAAC-1", "AAAG-1"], "S18")
    matrix["data"] = numpy.array([5, 16777217, 2], "i4")
    matrix["indices"], matrix["indptr"] = numpy.array([2, 0, 1]), numpy.array([0, 2, 3])
    matrix["shape"] = numpy.array([3, 2], "i4")
    features = matrix.create_group("features")
    features["id"], features["name"] = ([f"{one}{i}".encode() for i in range(3)] for one in "EG")
    features["feature_type"] = [b"Gene Expression", b"Gene Expression", b"Antibody Capture"]
    features["genome"] = [b"GRCh38", b"GRCh38", b""]
print("scanpy", scanpy.__version__, "numpy", numpy.__version__, "h5py", h5py.__version__)
for gex_only in ({}, {"gex_only": False}):
    cells = scanpy.read_10x_h5(path, **gex_only)
    print(gex_only, [*cells.var_names], cells.X.dtype, cells.X.toarray().astype(int).tolist())
PY
cat > "$folder/expected" <<'OUT'
scanpy 1.11.5 numpy 2.2.6 h5py 3.15.1
{} ['G0', 'G1'] float32 [[16777216, 0], [0, 2]]
{'gex_only': False} ['G0', 'G1', 'G2'] float32 [[16777216, 0, 5], [0, 2, 0]]
OUT
"$folder/venv/bin/python" -W ignore "$folder/run.py" "$folder/t.h5" | tee "$folder/found"
diff "$folder/expected" "$folder/found"
