"""In a browser: no error, sorting, filtering, both themes, the width of a phone, large plots.

Needs Chromium, its driver and selenium; skipped where one is missing.
"""

import io
import shutil
import subprocess

import pytest
from reports import folder, run_of

import srs_ooc

webdriver = pytest.importorskip("selenium.webdriver")
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

pytestmark = pytest.mark.browser
BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if BROWSER is None or DRIVER is None:
        pytest.skip("needs chromium and chromedriver")
    for program in (BROWSER, DRIVER):  # an installation that was broken off leaves some of it
        if subprocess.run([program, "--version"], capture_output=True, check=False).returncode:
            pytest.skip(f"needs {program} to start")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def opened(browser, kind):
    out = folder() / f"{kind}.html"
    if not out.exists():
        srs_ooc.open_run(run_of(kind)).report(out)
    browser.get(out.as_uri())
    return lambda css: browser.find_elements("css selector", css)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["classes", "many", "numbers", "provisional"])
def test_a_page_opens_without_an_error_and_draws_each_feature(browser, kind):
    find = opened(browser, kind)
    rows = find("#table tbody tr")
    assert len(rows) == len(find("td.plot canvas")) > 0
    assert browser.get_log("browser") == []


def test_the_table_sorts_and_filters(browser):
    find = opened(browser, "provisional")
    (head,) = find('th[data-column="name"] button')
    head.click()
    names = [cell.get_attribute("textContent") for cell in find("td.name")]
    assert names == sorted(names)
    head.click()
    assert [cell.get_attribute("textContent") for cell in find("td.name")] == names[::-1]
    assert find('th[data-column="name"]')[0].get_attribute("aria-sort") == "descending"
    find("#filter")[0].send_keys("SCRIPT>")
    assert [cell.text for cell in find("td.name")] == ["</script><script>alert(1)</script>"]
    assert find("#count")[0].text == "1 of 40 features"
    assert browser.get_log("browser") == []


def test_a_feature_is_shown_large_by_keyboard(browser):
    find = opened(browser, "classes")
    find("td.plot button")[0].send_keys("\ue007")  # Enter
    assert find("#large[open] canvas")
    assert find("#large-title")[0].text.strip()
    browser.switch_to.active_element.send_keys("\ue00c")  # Escape
    assert not find("#large[open]")


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_the_first_screen_holds_the_answers_beside_the_first_feature(browser, kind):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False},
    )
    find = opened(browser, kind)
    answers, (figure, below) = find(".answers strong"), find(".answers figure")
    assert len(answers) == len(find(".answers h3")) - 2 == 4
    for part in (*find(".answers p"), figure):
        assert part.rect["y"] + part.rect["height"] <= 800
        assert part is figure or part.rect["x"] + part.rect["width"] <= figure.rect["x"]
    (drawn,) = find("#figure-first img")
    assert drawn.get_attribute("alt") == "The feature that comes first"
    (observed,) = find("#figure-qq img")
    assert observed.get_attribute("alt") == "Observed and expected p-values"
    assert below.rect["y"] >= figure.rect["y"] + figure.rect["height"] - 1
    assert below.rect["x"] == figure.rect["x"]
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_themes_differ_and_a_phone_scrolls_only_down(browser):
    find = opened(browser, "many")
    papers = set()
    for button in find(".theme button"):
        button.click()
        papers.add(find("body")[0].value_of_css_property("background-color"))
    assert len(papers) == 2
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True},
    )
    assert browser.execute_script("return document.documentElement.scrollWidth") == 390
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert browser.get_log("browser") == []


def pixels(part):
    """What a part of a page looks like, 0 to 1 (height, width, 3)."""
    from matplotlib.image import imread

    return imread(io.BytesIO(part.screenshot_as_png))[..., :3]


@pytest.mark.parametrize("theme", [0, 1])
def test_figures_lie_on_the_page_in_both_themes(browser, theme):
    find = opened(browser, "classes")
    find(".theme button")[theme].click()
    paper = pixels(find("h2")[0])[0, -1]
    assert (paper.mean() > 0.5) == (theme == 0)
    for image in find("figure img"):
        drawn = pixels(image)
        assert abs(drawn[:3, :3] - paper).max() < 0.02
        assert abs(drawn - paper).max() > 0.6  # what is written there


def test_a_table_that_is_cut_shows_on_which_side_it_goes_on(browser):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 800, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    find = opened(browser, "classes")
    (table,) = find("#features .scroll")
    for end, side in ((0, -4), (10_000, 3)):
        browser.execute_script("arguments[0].scrollLeft = arguments[1]", table, end)
        row = pixels(table)[60]  # of the first line
        assert row[side].mean() < row[-1 - side].mean() - 0.2
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_printed_page_has_no_controls_but_their_titles(browser):
    find = opened(browser, "classes")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not any(part.is_displayed() for part in (*find("nav"), *find(".tools")))
        shown = "return getComputedStyle(document.querySelector('th button')).display"
        assert browser.execute_script(shown) == "contents"
        assert find("#table thead")[0].text.split()[0] == "rank"
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
