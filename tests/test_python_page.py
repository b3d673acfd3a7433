"""Every block of docs/python.md runs, in order, in an empty folder."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.documents

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "python.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def blocks_of(page):
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:No features were selected:UserWarning")
def test_the_blocks_run_and_print_what_the_page_shows(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    known = {}
    found = blocks_of(PAGE)
    for number, (block, shown) in enumerate(found):
        exec(compile(block, f"python, block {number}", "exec"), known)
        printed = capsys.readouterr().out
        assert not shown or printed == shown
    assert found
    assert set(known["result"].selected) >= {"f0", "f1", "f2"}
    assert known["same"].n_iterations == 2500
    again = known["srs_ooc"].open_run("small.run").selected
    assert len(set(again) - {"f0", "f1", "f2"}) == len(again) - 3 == 2
