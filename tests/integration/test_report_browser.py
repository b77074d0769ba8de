"""The report in a real browser: both widths, both colour schemes, keyboard, paper, no script."""

import pytest

from golden.report.campaigns import simulated
from integration.browser_steps import PHONE, WIDE, browsing, painted, watched
from mydyno.report.html import render_html

pytestmark = pytest.mark.browser

_NAMES = ("ladder", "sampled", "no-winner", "failing", "many", "hostile")
_INK = """canvas => {
  const dots = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  return dots.some((value) => value !== 0);
}"""

# The background of a chart: the commonest colour of a column in the warm-up and of one after it.
_BACKGROUND = """canvas => {
  const { width, height } = canvas, r = devicePixelRatio;
  const dots = canvas.getContext('2d').getImageData(0, 0, width, height).data;
  return [0.25, 0.8].map((x) => {
    const seen = {};
    for (let y = 26 * r; y < height - 34 * r; y++) {
      const at = 4 * (y * width + Math.round(x * width)), dot = dots.slice(at, at + 4).join();
      seen[dot] = (seen[dot] || 0) + 1;
    }
    return Object.keys(seen).sort((a, b) => seen[b] - seen[a])[0];
  });
}"""


@pytest.fixture(scope="module")
def chromium():
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("reports")
    for name in _NAMES:
        page = render_html(simulated(name, made / name))
        (made / f"{name}.html").write_text(page, encoding="utf-8")
    return made


@pytest.fixture
def opened(chromium, folder):
    """Open a report; at the end, nothing was complained of and nothing else was asked for."""
    with watched(chromium, folder, "html.drawn") as open_:
        yield open_


@pytest.mark.parametrize(
    ("size", "scheme"),
    [
        (WIDE, "light"),
        (WIDE, "dark"),
        (PHONE, "dark"),
        ({"width": 1010, "height": 700}, "light"),
    ],
)
@pytest.mark.parametrize("name", _NAMES)
def test_it_opens_fits_and_draws(opened, name, size, scheme):
    page = opened(name, viewport=size, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".canvas canvas").count() == page.locator(".canvas").count() > 0
    painted(page)
    assert all(canvas.evaluate(_INK) for canvas in page.locator("canvas").all())
    assert page.locator(".panels").first.is_hidden()
    assert page.locator("h1").bounding_box()["y"] < size["height"] / 2


def test_the_verdict_comes_first_and_does_not_depend_on_colour_alone(opened):
    page = opened("ladder", viewport=WIDE)
    assert page.locator("h1").inner_text().startswith("ALL gives 1.93 times")
    assert page.locator(".verdicts tbody .verdict").all_inner_texts() == [
        "○ baseline",
        "? inconclusive",
        "✓ adopt",
        "✓ adopt",
    ]


def test_a_treatment_is_switched_by_keyboard(opened):
    page = opened("ladder", viewport=WIDE)
    before = painted(page)
    button = page.get_by_role("button", name="MYSQL")
    button.focus()
    page.keyboard.press("Space")
    assert button.get_attribute("aria-pressed") == "false"
    assert painted(page) != before
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"
    assert painted(page) == before


def test_a_chart_is_read_out_by_keyboard(opened):
    page = opened("ladder", viewport=WIDE)
    page.locator(".canvas").first.focus()
    for _ in range(3):
        page.keyboard.press("PageDown")
    readout = page.locator(".readout").first
    assert readout.get_attribute("aria-live") == "polite"
    legend = " ".join(readout.inner_text().split())
    assert legend.startswith("at 30 s STOCK ")
    assert all(name in legend for name in ("KERN", "MYSQL", "ALL"))


def test_of_many_treatments_only_the_strongest_are_on_at_first(opened):
    page = opened("many", viewport=WIDE)
    assert page.locator(".toggles button").count() == 20
    assert page.locator(".toggles button[aria-pressed=true]").count() == 8


def test_every_figure_has_words_and_a_table(opened):
    page = opened("ladder", viewport=WIDE)
    figures = page.locator("figure")
    for i in range(figures.count()):
        assert figures.nth(i).locator("figcaption p").inner_text().strip()
        assert figures.nth(i).locator("table, a[href='#trials']").count() >= 1
    assert page.locator("svg[role=img]:not([aria-label])").count() == 0
    page.get_by_text("Throughput over time as a table").click()
    assert page.locator("figure.time table").first.locator("tbody tr").count() == 12


@pytest.mark.parametrize("size", [WIDE, PHONE])
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
    page = opened("ladder", viewport=WIDE)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".canvas").first.is_hidden()
    assert page.locator(".panels").first.is_visible()
    assert page.locator("figure.time table").first.is_visible()
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() > 0


def test_hostile_text_does_nothing(opened):
    page = opened("hostile", viewport=WIDE)
    assert page.title().startswith("<script>document.title='owned'<script>")
    assert page.locator("img").count() == 0
    assert page.locator("body script:not([type])").count() == 2


def test_the_command_can_be_copied(opened):
    page = opened("ladder", viewport=WIDE)
    page.get_by_role("button", name="Copy").click()
    page.wait_for_selector("#copied:not(:empty)")
    assert page.evaluate("String(getSelection())").startswith("mydyno run ladder.toml")


def test_what_the_machine_did_is_drawn_for_two_trials(opened):
    page = opened("sampled", viewport=WIDE)
    shown = page.locator("#resources figure.resource")
    assert shown.count() == 17
    assert page.locator("#resources .canvas canvas").count() == 34
    assert page.locator("#resources .drawing").first.is_hidden()
    names = page.locator("#panel-cpu .finding b").all_inner_texts()
    assert names == ["STOCK", "ALL"]
    assert page.locator("#panel-cpu .legend li").count() == 5
    for i in range(shown.count()):
        assert all(s.strip() for s in shown.nth(i).locator(".finding").all_inner_texts())


def test_one_cursor_goes_through_all_panels(opened):
    page = opened("sampled", viewport=WIDE)
    page.locator("#panel-cpu .canvas").first.hover(position={"x": 250, "y": 60})
    readouts = [" ".join(s.split()) for s in page.locator("#resources .readout").all_inner_texts()]
    times = [float(text.split()[1]) for text in readouts if text]
    assert len(times) == 34
    assert max(times) - min(times) <= 1.0
    assert "user" in readouts[4]
    assert "cores" in readouts[4]
    assert page.locator("#time .readout").first.inner_text() == ""


def test_a_panel_is_read_out_by_keyboard_and_the_others_follow(opened):
    page = opened("sampled", viewport=WIDE)
    page.locator("#panel-latency .canvas").first.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    read = page.locator("#panel-latency .readout").first
    assert read.get_attribute("aria-live") == "polite"
    assert " ".join(read.inner_text().split()).startswith("at 4.")
    other = page.locator("#panel-network .readout").last.inner_text()
    assert abs(float(other.split()[1]) - float(read.inner_text().split()[1])) <= 1.0


def test_a_trial_is_chosen_by_keyboard(opened):
    page = opened("sampled", viewport=WIDE)
    canvas = page.locator("#panel-cpu canvas").last
    before = painted(page, canvas)
    pick = page.locator(".picks select").last
    assert pick.locator("optgroup").count() == 4
    pick.focus()
    page.keyboard.press("ArrowDown")
    assert painted(page, canvas) != before
    assert page.locator("#panel-cpu .finding b").last.inner_text() == "MYSQL"
    assert "MYSQL" in page.locator("#panel-cpu .canvas").last.get_attribute("aria-label")
    page.keyboard.press("ArrowUp")
    assert painted(page, canvas) == before


def test_a_trial_without_a_source_is_labelled(opened):
    page = opened("sampled", viewport=WIDE)
    for option in (
        page.locator(".picks select").first.locator("optgroup").first.locator("option").all()
    ):
        page.locator(".picks select").first.select_option(
            index=int(option.evaluate("(o) => o.index"))
        )
        if (
            page.locator("#panel-redo .finding")
            .first.inner_text()
            .endswith("Not recorded in this trial.")
        ):
            break
    else:
        pytest.fail("one of the trials has no server")
    assert "Not recorded" not in page.locator("#panel-cpu .finding").first.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_warm_up_is_shaded_in_every_panel(opened, scheme):
    page = opened("sampled", viewport=WIDE, color_scheme=scheme)
    painted(page)
    for canvas in page.locator("#resources canvas").all():
        warm, measured = canvas.evaluate(_BACKGROUND)
        assert warm != measured, canvas.evaluate("(c) => c.closest('figure').id")


def test_panels_without_script_and_on_paper(opened):
    still = opened("sampled", script=False, viewport=PHONE)
    assert still.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert still.locator("#resources .drawing svg[role=img]").count() == 34
    assert still.locator("#resources .drawing").first.is_visible()
    assert still.locator(".picks").is_hidden()
    assert still.locator("#resources .used").first.is_visible()
    page = opened("sampled", viewport=WIDE)
    page.emulate_media(media="print")
    assert page.locator("#resources .drawing").first.is_visible()
    assert page.locator("#resources .canvas").first.is_hidden()
