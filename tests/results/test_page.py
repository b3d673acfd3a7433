"""A page asks nothing of a network, and the names of features are data in it."""

import base64
import hashlib
import json
import re
import shutil
import sys
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest
from command import peak_kb
from reports import HOSTILE, N_FEATURES, folder, report_of, run_of

import srs_ooc
from srs_ooc.base.errors import UsageError
from srs_ooc.base.text import visible
from srs_ooc.cli import cli
from srs_ooc.results.figures import image_of
from srs_ooc.results.page import KINDS, write_report
from srs_ooc.results.report import ends_of, profiles_of

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")


@cache
def page_of(kind):
    with report_of(kind) as report:
        return KINDS["html"](report)


class Reader(HTMLParser):
    """Elements with their attributes, and the texts of scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.texts, self._open = [], [], None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open = (tag, dict(attrs)) if tag in ("script", "style") else None

    def handle_data(self, data):
        if self._open is not None:
            self.texts.append((*self._open, data))
            self._open = None


def digest(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["classes", "numbers", "nothing"])
def test_a_page_names_no_other_place_and_its_policy_allows_only_what_is_in_it(kind):
    reader = Reader(page_of(kind))
    (policy,) = [a["content"] for tag, a in reader.elements if a.get("http-equiv")]
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy
    data, script = (t for t in reader.texts if t[0] == "script")
    (style,) = (t for t in reader.texts if t[0] == "style")
    assert data[1] == {"type": "application/json", "id": "data"}
    assert f"script-src 'sha256-{digest(script[2])}'" in policy
    assert f"style-src 'sha256-{digest(style[2])}'" in policy
    assert "url(" not in style[2]
    for tag, attributes in reader.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href", "xlink:href", "action", "srcset"):
            assert re.match(r"#|data:image/svg\+xml;base64,", attributes.get(name) or "#")
    ids = [a["id"] for _, a in reader.elements if "id" in a]
    assert len(ids) == len(set(ids))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "targets"), [("classes", {"ill", "well"}), ("numbers", ()), ("nothing", {"0", "1"})]
)
def test_names_of_features_are_data(kind, targets):
    page = page_of(kind)
    assert "<script>alert" not in page
    assert page.count("<img ") == page.count('<img src="data:image/svg+xml;base64,')
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u2028\u202e]", page)
    assert page.count("</script>") == 2
    reader = Reader(page)
    data = json.loads(next(t[2] for t in reader.texts if t[0] == "script"))
    shown = set(data["values"]["name"])
    assert shown & {visible(name) for name in HOSTILE[:3]}
    assert data["legend"]["classes"] == ([] if kind == "numbers" else sorted(targets))


@pytest.mark.slow
def test_figures_keep_names_as_they_are():
    with report_of("classes") as report:
        for name in ("first", "volcano", "discoveries", "effects"):
            image = image_of(report, name)
            assert image == image_of(report, name)
            svg = base64.b64decode(image.partition(",")[2]).decode()
            assert "\x1b" not in svg
    assert "&lt;/script&gt;" in svg


def test_markdown_escapes_names_and_json_holds_them_as_they_are():
    with report_of("classes") as report:
        text = KINDS["md"](report)
        record = json.loads(KINDS["json"](report))
    assert "<script>" not in text.replace("\\<", "")
    assert "\x1b" not in text
    assert [line["name"] for line in record["features"]] == srs_ooc.open_run(
        run_of("classes")
    ).selected


def test_without_its_libraries_a_report_says_what_to_install(monkeypatch, tmp_path):
    result = srs_ooc.open_run(run_of("classes"))
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(UsageError, match=r"pip install 'srs-ooc\[report\]'"):
        result.report(tmp_path / "a.html")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(UsageError, match="matplotlib"):
        result.plot_effects()
    assert result.report(tmp_path / "a.md", kind="md").read_text().startswith("# classes")
    assert not (tmp_path / "a.html").exists()


def test_a_report_is_not_written_over_another(tmp_path):
    result = srs_ooc.open_run(run_of("classes"))
    out = result.report(tmp_path / "a.json", kind="json")
    with pytest.raises(UsageError, match="expected a path that is free"):
        result.report(out, kind="json")
    with pytest.raises(UsageError, match="kind: expected one of html, md, json"):
        result.report(tmp_path / "b", kind="pdf")


@pytest.mark.slow
def test_a_report_holds_its_cap():
    out = folder() / "capped.html"
    assert peak_kb("report", run_of("many"), "-o", out, "--memory-mb", 145) * 1024 < 145e6
    assert out.stat().st_size < 400_000


def test_a_report_in_place_of_another_is_asked_for(tmp_path):
    out = tmp_path / "a.html"
    out.write_text("old")
    with report_of("classes") as report:
        with pytest.raises(UsageError, match="--overwrite"):
            write_report(report, out, "md")
        assert out.read_text() == "old"
        write_report(report, out, "md", replaces=True)
    assert out.read_text().startswith("# classes")
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]


@pytest.mark.slow
def test_each_listed_feature_takes_few_bytes():
    for kind in ("classes", "many", "numbers"):
        with report_of(kind) as report:
            assert report.records
            every = np.arange(N_FEATURES)
            profiles, ends = profiles_of(report, every), ends_of(report, every)
        assert profiles.cells.shape[1] <= 200
        assert len(profiles.cells) == len(ends) == N_FEATURES


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "is_there"), [("classes", True), ("provisional", False)])
def test_a_page_has_a_part_of_figures_where_it_has_some(kind, is_there):
    assert ('<section id="figures"' in page_of(kind)) == is_there
    assert ('href="#figures"' in page_of(kind)) == is_there


@pytest.mark.parametrize("kind", ["classes", "nothing"])
def test_a_filter_by_q_value_is_there_only_where_features_have_some(kind):
    ids = [attrs.get("id") for _, attrs in Reader(page_of(kind)).elements]
    columns = [attrs.get("data-column") for _, attrs in Reader(page_of(kind)).elements]
    assert ("limit" in ids) == ("q_value" in columns) == (kind == "classes")


PRINTED = [
    ("features", "RUN", "--csv"),
    ("features", "RUN", "--json"),
    ("features", "RUN"),
    ("compact", "RUN", "--csv"),
    ("compact", "RUN", "--json"),
    ("scores", "STORE", "--csv", "--memory-mb", 4000),
    ("scores", "STORE", "--json", "--memory-mb", 4000),
    ("inspect", "STORE", "--names"),
    ("inspect", "STORE", "--json"),
    ("inspect", "STORE"),
    ("report", "RUN", "--format", "json", "-o", "-"),
    ("report", "RUN", "-o", "-"),
]


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of a run: compact leaves folds in it."""
    return shutil.copytree(run_of("classes"), tmp_path_factory.mktemp("copied") / "t.run")


@pytest.mark.slow
@pytest.mark.parametrize("words", PRINTED, ids=lambda words: " ".join(map(str, words)))
def test_a_terminal_obeys_no_name(words, copied, monkeypatch, capsys):
    places = {"RUN": str(copied), "STORE": str(run_of("classes").with_suffix(".zarr"))}
    given = [places.get(word, str(word)) for word in words]

    def printed(is_terminal):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal, raising=False)
        cli.main(given, standalone_mode=False)
        return capsys.readouterr().out

    on_terminal, elsewhere = printed(True), printed(False)
    assert not re.search("[\x1b\u202e\u2028]", on_terminal)
    if {"--csv", "--names"} & set(words):
        assert HOSTILE[2] in elsewhere
        assert visible(HOSTILE[2]) in on_terminal
    if {"--json", "json"} & set(words) and words[0] != "inspect":
        assert "a\\u001b[2Jb\u202e\u2028" in elsewhere
