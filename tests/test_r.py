"""Every block of R in docs/r.md runs, and prints what the page shows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.documents, pytest.mark.slow]

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "r.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```r\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
OLDEST = re.search(r"version ([\d.]+) or newer", PAGE)


def rscript(folder, text):
    """Return what R prints of a program, with this Python behind reticulate."""
    program = folder / "bin" / "srs-ooc"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m srs_ooc "$@"\n')
    program.chmod(0o755)
    (folder / "page.R").write_text(text)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "PYTHONPATH": str(ROOT), "RETICULATE_PYTHON": sys.executable}
    how = {"cwd": folder, "env": os.environ | own, "capture_output": True, "text": True}
    done = subprocess.run(["Rscript", "page.R"], **how, check=False)
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def folder(tmp_path):
    """Return a folder for R with a reticulate of the version that the page asks for."""
    pytest.importorskip("pandas")
    pytest.importorskip("jinja2")
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    there = 'cat(requireNamespace("reticulate", quietly = TRUE) && packageVersion("reticulate") >= '
    if rscript(tmp_path, f'{there}"{OLDEST[1]}")') != "TRUE":
        pytest.skip(f"reticulate {OLDEST[1]} or newer is not installed")
    return tmp_path


def test_the_blocks_of_the_page_run(folder):
    blocks = BLOCK.findall(PAGE)
    ends = [f'cat("END OF BLOCK {number}\\n")' for number in range(len(blocks))]
    texts = [f"{text}{end}\n" for (text, _), end in zip(blocks, ends, strict=True)]
    printed = rscript(folder, "".join([*texts, "cat(sum(features$selected == 'true'))"]))
    *parts, n_selected = re.split(r"END OF BLOCK \d+\n", printed)
    for (_, shown), part in zip(blocks, parts, strict=True):
        assert not shown or part == shown
    assert n_selected == "2"
    assert (folder / "selected.csv").read_text().startswith("row ids,g2,g1,")
    assert (folder / "data.html").stat().st_size > 100_000


DIFFERS = """
srs <- reticulate::import("srs_ooc")
refused <- function(words, call) {
  said <- tryCatch({call; "nothing"}, error = conditionMessage)
  if (!grepl(words, said, fixed = TRUE)) stop(words, " is not in: ", said)
}
kept <- function(...) srs$ingest(..., target = rep(c("a", "b"), 10), overwrite = TRUE)
x <- matrix(as.numeric(1:60), 20)
frame <- data.frame(x, age = 1:20, sex = rep(factor(c("m", "f", "f", "m")), 5))
both <- reticulate::tuple("age", "sex")
refused("found 300.0 (float)", {kept(x, "a.zarr"); srs$run("a.zarr", iterations = 300)})
refused("expected names of columns", kept(frame, "b.zarr", covariates = c("age", "sex")))
stopifnot(kept(frame, "b.zarr", covariates = both)$n_features == 3)
x[3, 2] <- NA
whole <- matrix(c(NA, 2:60), 20)
refused("in R, `x + 0`", kept(whole, "c.zarr"))
for (one in list(x, whole + 0)) stopifnot(kept(one, "c.zarr")$n_missing_cells == 1)
flags <- matrix(c(NA, rep(TRUE, 19)), 20, 2)
stopifnot(kept(flags, "d.zarr")$n_missing_cells == 0)
stopifnot(kept(flags + 0, "d.zarr")$n_missing_cells == 2)
some <- factor(c(NA, rep(c("a", "b"), 10)[-1]))
stopifnot(srs$ingest(x, "e.zarr", target = some)$n_dropped_rows == 1)
"""


def test_what_the_page_says_of_numbers_names_and_missing_values_is_so(folder):
    rscript(folder, DIFFERS)
