"""The report in a real browser: both widths, both colour schemes, keyboard, paper, no script."""

from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import sync_playwright

from mydyno.analyse.result import Result
from mydyno.report.html import render_html

pytestmark = pytest.mark.browser

_CASES = Path(__file__).parents[1] / "golden" / "report"
_NAMES = ("ladder", "no-winner", "many", "hostile")
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_WIDE, _PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
_INK = """canvas => {
  const dots = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  return dots.some((value) => value !== 0);
}"""


@pytest.fixture(scope="module")
def chromium():
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=list(_FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("reports")
    for name in _NAMES:
        result = msgspec.json.decode((_CASES / name / "result.json").read_bytes(), type=Result)
        (made / f"{name}.html").write_text(render_html(result), encoding="utf-8")
    return made


@pytest.fixture
def opened(chromium, folder):
    """Open a report; at the end, nothing was complained of and nothing else was asked for."""
    contexts, complaints, requests = [], [], []

    def open_(name, *, script=True, **options):
        context = chromium.new_context(java_script_enabled=script, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto((folder / f"{name}.html").as_uri())
        if script:
            page.wait_for_selector("html.drawn")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in requests if url.startswith("file:")]) == len(contexts)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [_WIDE, _PHONE, {"width": 1010, "height": 700}])
@pytest.mark.parametrize("name", _NAMES)
def test_it_opens_fits_and_draws(opened, name, size, scheme):
    page = opened(name, viewport=size, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".canvas canvas").count() == page.locator("figure.time").count() > 0
    _painted(page)
    assert all(canvas.evaluate(_INK) for canvas in page.locator("canvas").all())
    assert page.locator(".panels").first.is_hidden()
    assert page.locator("h1").bounding_box()["y"] < size["height"] / 2


def test_the_verdict_comes_first_and_is_not_said_by_colour_alone(opened):
    page = opened("ladder", viewport=_WIDE)
    assert page.locator("h1").inner_text().startswith("ALL does 1.92 times")
    assert page.locator(".verdicts tbody .verdict").all_inner_texts() == [
        "○ baseline",
        "? inconclusive",
        "✓ adopt",
        "✓ adopt",
    ]


def test_a_treatment_is_switched_by_keyboard(opened):
    page = opened("ladder", viewport=_WIDE)
    before = _painted(page)
    button = page.get_by_role("button", name="MYSQL")
    button.focus()
    page.keyboard.press("Space")
    assert button.get_attribute("aria-pressed") == "false"
    assert _painted(page) != before
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"
    assert _painted(page) == before


def test_a_chart_is_read_out_by_keyboard(opened):
    page = opened("ladder", viewport=_WIDE)
    page.locator(".canvas").first.focus()
    for _ in range(3):
        page.keyboard.press("PageDown")
    readout = page.locator(".readout").first
    assert readout.get_attribute("aria-live") == "polite"
    said = " ".join(readout.inner_text().split())
    assert said.startswith("at 30 s STOCK ")
    assert all(name in said for name in ("KERN", "MYSQL", "ALL"))


def test_of_many_treatments_only_the_strongest_are_on_at_first(opened):
    page = opened("many", viewport=_WIDE)
    assert page.locator(".toggles button").count() == 20
    assert page.locator(".toggles button[aria-pressed=true]").count() == 8


def test_every_figure_has_words_and_a_table(opened):
    page = opened("ladder", viewport=_WIDE)
    figures = page.locator("figure")
    for i in range(figures.count()):
        assert figures.nth(i).locator("figcaption p").inner_text().strip()
        assert figures.nth(i).locator("table, a[href='#trials']").count() >= 1
    assert page.locator("svg[role=img]:not([aria-label])").count() == 0
    page.get_by_text("Throughput over time as a table").click()
    assert page.locator("figure.time table").first.locator("tbody tr").count() == 12


@pytest.mark.parametrize("size", [_WIDE, _PHONE])
def test_without_script_it_is_complete(opened, size):
    page = opened("ladder", script=False, viewport=size)
    assert page.locator(".panels svg[role=img]").count() == 8
    assert page.locator(".panels").first.is_visible()
    for hidden in (".toggles", ".canvas", "#copy"):
        assert page.locator(hidden).first.is_hidden()
    box = page.locator(".panels path.line").first.bounding_box()
    assert box["width"] > 100
    assert page.locator(".verdicts .mark").count() == 3


def test_on_paper_the_drawings_replace_the_canvases_and_everything_is_open(opened):
    page = opened("ladder", viewport=_WIDE)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".canvas").first.is_hidden()
    assert page.locator(".panels").first.is_visible()
    assert page.locator("figure.time table").first.is_visible()
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() > 0


def test_hostile_text_does_nothing(opened):
    page = opened("hostile", viewport=_WIDE)
    assert page.title().startswith("<script>document.title='owned'</script>")
    assert page.locator("img").count() == 0
    assert page.locator("body script:not([type])").count() == 2


def test_the_command_can_be_copied(opened):
    page = opened("ladder", viewport=_WIDE)
    page.get_by_role("button", name="Copy").click()
    page.wait_for_selector("#copied:not(:empty)")
    assert page.evaluate("String(getSelection())").startswith("mydyno run demo")


def _painted(page):
    """Return the first chart's picture, once the browser has painted what was asked for."""
    frame = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    page.evaluate(frame)
    return page.locator("canvas").first.evaluate("(canvas) => canvas.toDataURL()")
