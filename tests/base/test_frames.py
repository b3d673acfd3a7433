"""Arrow arrays from buffers are those that pyarrow makes, and load no pandas."""

import subprocess
import sys

import numpy as np
import pytest
from command import environment
from examples import given, st

from srs_ooc.base.frames import arrow_numbers, arrow_texts

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")

TEXTS = st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=5), max_size=20)


@given(TEXTS)
def test_texts_are_those_of_pyarrow(texts):
    made = arrow_texts(texts)
    made.validate(full=True)
    assert made.equals(pa.array(texts, pa.string()))


@given(st.lists(st.floats(), max_size=20))
def test_numbers_are_those_of_pyarrow_and_none_where_nan(values):
    made = arrow_numbers(np.array(values, np.float64)[::-1])
    made.validate(full=True)
    assert made.equals(pa.array(values[::-1], pa.float64(), from_pandas=True))


def test_writing_parquet_loads_no_pandas(tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "from srs_ooc.methods.networks.edges import write_edges\n"
        "write_edges(Path(sys.argv[1]), [[('a', 'b', 0.5)]], replaces=True)\n"
        "sys.exit('pandas' in sys.modules)"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "edges.parquet")]
    assert subprocess.run(words, env=environment(), check=False).returncode == 0
    assert pa.parquet.read_table(tmp_path / "edges.parquet").to_pylist() == [
        {"regulator": "a", "target": "b", "weight": 0.5}
    ]
