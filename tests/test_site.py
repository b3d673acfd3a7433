"""The documentation builds without a warning, holds every page, and needs no network."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.site, pytest.mark.slow]

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for library in ("mkdocs", "material", "mkdocstrings", "mkdocs_click"):
        pytest.importorskip(library)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q"]
    done = subprocess.run(
        [*command, "-f", str(ROOT / "mkdocs.yml"), "-d", str(folder)],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_every_page_is_in_the_site(site):
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    made = {path.relative_to(site) for path in site.rglob("*.html")}
    assert {page.with_suffix(".html") for page in pages if page.stem != "README"} <= made


def test_no_page_loads_anything_from_the_network(site):
    loads = re.compile(r"""<(?:script|img|link)[^>]+(?:src|href)=["']?(https?:)?//[^>]*""")
    for page in site.rglob("*.html"):
        found = [tag[0] for tag in loads.finditer(page.read_text(encoding="utf-8"))]
        assert [tag for tag in found if 'rel="canonical"' not in tag] == [], page


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("reference/commands.html", "Cap on the memory of the process"),
        ("reference/commands.html", "srs-ooc compact"),
        ("reference/commands.html", "--worker-memory-mb MB"),  # not in the help of one screen
        ("reference/python.html", "n_features_to_select"),
    ],
)
def test_the_reference_is_made_of_the_program(site, page, said):
    text = re.sub(r"<[^>]+>|\s+", " ", (site / page).read_text(encoding="utf-8"))
    assert said in re.sub(r" +", " ", text)
