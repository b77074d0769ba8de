"""The report in a real browser: both widths, both colour schemes, keyboard, paper, no script."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from golden.report.campaigns import simulated
from golden.report.limits import diagnosed
from integration.browser_steps import PHONE, WIDE, browsing, painted, watched
from mydyno.cli.run_directory import result
from mydyno.report.html import render_html
from mydyno.report.redact import mapped

pytestmark = pytest.mark.browser

_NAMES = ("ladder", "sampled", "no-winner", "failing", "many", "hostile", "limits")
# The pixels of a chart that are neither its background, nor its grid, nor as bright as its medians.
_SEEN = """canvas => {
  const { width, height } = canvas;
  const dots = canvas.getContext('2d').getImageData(width / 2, 40, width / 2, height - 90).data;
  let seen = 0;
  for (let i = 0; i < dots.length; i += 4) {
    const most = Math.max(dots[i], dots[i + 1], dots[i + 2]);
    if (most > 110 && most < 190) seen++;
  }
  return seen;
}"""
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
    for name in _NAMES[:-1]:
        page = render_html(simulated(name, made / name))
        (made / f"{name}.html").write_text(page, encoding="utf-8")
    sampled = result(made / "sampled")
    names = [row.name for row in sampled.comparison.treatments]
    limits = diagnosed(names, sampled.comparison.treatments[0].workload)
    (made / "limits.html").write_text(render_html(sampled, limits), encoding="utf-8")
    (made / "grid.html").write_text(render_html(_grid(sampled)), encoding="utf-8")
    (made / "long.html").write_text(render_html(_long(sampled)), encoding="utf-8")
    return made


def _grid(found):
    """Return a result whose treatments have the names of a grid's cells."""
    cells = (
        f"innodb_flush_method={method},innodb_flush_log_at_trx_commit={commit}"
        for method in ("fsync", "O_DIRECT")
        for commit in (1, 2)
    )
    names = dict(zip([row.name for row in found.comparison.treatments], cells, strict=False))
    return mapped(found, lambda text: names.get(text, text))


def _long(found):
    """Return a result with long labels: 954,000 times as many operations, of other times."""

    def stretched(curve):
        return replace(curve, values=[954.321 * v for v in curve.values])

    trials = [
        replace(
            t,
            curves=[stretched(c) for c in t.curves],
            gauges=[stretched(c) for c in t.gauges],
            metrics={name: 954.321 * v for name, v in t.metrics.items()},
        )
        for t in found.trials
    ]
    return replace(found, trials=trials)


@pytest.fixture
def opened(chromium, folder):
    """Open a report; at the end, nothing was complained of and nothing else was asked for."""
    with watched(chromium, folder, "html.drawn") as open_:
        yield open_


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [
        *((name, WIDE, "light") for name in _NAMES),
        *((name, PHONE, "dark") for name in _NAMES),
        ("sampled", WIDE, "dark"),
        ("sampled", {"width": 1010, "height": 700}, "light"),
    ],
)
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
    for hidden in (".toggles", ".canvas", "[data-copies]"):
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
    page.locator("[data-copies=command]").click()
    page.wait_for_selector("[data-copies=command] + output:not(:empty)")
    assert page.evaluate("String(getSelection())").startswith("mydyno run ladder.toml")


def test_the_spec_is_in_the_page_and_can_be_copied(opened):
    page = opened("ladder", viewport=WIDE)
    assert page.locator("#spec-text").is_hidden()
    page.locator("#spec summary").click()
    page.locator("[data-copies=spec-text]").click()
    page.wait_for_selector("[data-copies=spec-text] + output:not(:empty)")
    spec = (Path(__file__).parents[1] / "golden/report/ladder/campaign.toml").read_text()
    assert page.locator("#spec-text").text_content() == spec
    assert page.evaluate("String(getSelection())").strip() == spec.strip()


@pytest.mark.parametrize("name", ["ladder", "sampled", "grid"])
def test_every_heading_has_a_link_to_itself(opened, name):
    page = opened(name, viewport=WIDE)
    wrong = page.evaluate(
        """() => [...document.querySelectorAll('section > h2, .anchor')].filter((e) => {
          const link = e.matches('h2') ? e.querySelector('.anchor') : e;
          return !link || !document.querySelector(link.getAttribute('href')).contains(link);
        }).map((e) => e.textContent)"""
    )
    assert wrong == []
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))
    link = page.locator("#trials h2 .anchor")
    assert link.evaluate("(e) => getComputedStyle(e).opacity") == "0"
    link.focus()
    assert link.evaluate("(e) => getComputedStyle(e).opacity") == "1"
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url.endswith("#trials"))


_OUTSIDE = """() => [...document.querySelectorAll('svg text')].filter((e) => {
  const box = e.getBoundingClientRect(), around = (e.closest('.scroll') ?? document.body);
  const print = matchMedia('print').matches, within = around.getBoundingClientRect();
  const [left, right] = print ? [0, innerWidth] : [within.left, within.right];
  return box.width && (box.left < Math.max(left, 0) ||
    box.right > Math.min(right, document.documentElement.clientWidth));
}).map((e) => `${e.textContent} at ${e.getBoundingClientRect().left}`)"""
_OVERLAPPING = """() => [...document.querySelectorAll('svg')].flatMap((svg) => {
  const boxes = [...svg.children].filter((e) => e.matches('text')).map((e) =>
    [e.textContent, e.getBoundingClientRect()]).filter(([, b]) => b.width);
  return boxes.flatMap(([a, x], i) => boxes.slice(i + 1).filter(([, y]) =>
    x.left < y.right + 2 && y.left < x.right + 2 && x.top < y.bottom && y.top < x.bottom)
    .map(([b]) => `${a} and ${b}`));
})"""


@pytest.mark.parametrize("name", [*_NAMES, "long"])
def test_no_label_is_cut_or_touches_another_on_paper(opened, name):
    page = opened(name, viewport={"width": 688, "height": 1000})  # A4 less its margins
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("svg text").count() > 0
    assert page.evaluate(_OUTSIDE) == []
    assert page.evaluate(_OVERLAPPING) == []


@pytest.mark.parametrize("name", [*_NAMES, "long"])
def test_no_labels_overlap_on_a_phone(opened, name):
    """Without a script all drawings are there; one hides some of them and makes no other."""
    page = opened(name, viewport=PHONE, script=False)
    assert page.evaluate(_OVERLAPPING) == []
    assert page.evaluate(_OUTSIDE) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_single_trials_are_seen(opened, scheme):
    page = opened("ladder", viewport=WIDE, color_scheme=scheme)
    painted(page)
    ratios = page.evaluate(
        """() => {
      const root = getComputedStyle(document.documentElement);
      const read = (name) => root.getPropertyValue(name).trim();
      const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
      const line = (x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
      const lum = (c) => c.map((x) => line(x / 255))
        .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
      const part = parseInt(read('--faint'), 16) / 255;
      return [0, 1, 2, 3, 4, 5, 6, 7].map((n) => {
        const back = rgb(read('--paper')), tone = rgb(read(`--c${n}`));
        const [a, b] = [lum(tone.map((x, i) => part * x + (1 - part) * back[i])), lum(back)];
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      });
    }"""
    )
    assert min(ratios) >= (3 if scheme == "dark" else 1.4)
    if scheme == "dark":  # and so it is drawn: at the end of a trial, where few lines cross
        assert page.locator(".canvas canvas").first.evaluate(_SEEN) > 100


@pytest.mark.parametrize("name", ["sampled", "grid", "many"])
def test_no_table_is_cut(opened, name):
    page = opened(name, viewport=WIDE)
    cut = page.evaluate(
        """() => [...document.querySelectorAll('.used, .verdicts')].filter((t) =>
          t.checkVisibility() && t.offsetWidth > t.closest('.scroll').clientWidth).length"""
    )
    assert cut == 0


def test_a_grid_has_short_names_and_their_legend(opened):
    page = opened("grid", viewport=WIDE)
    assert "a1 b2" in page.locator(".verdicts tbody th").all_inner_texts()
    assert page.locator(".names li").count() == 2
    assert "a1 fsync, a2 O_DIRECT" in page.locator(".names").inner_text()
    assert "flush_method=fsync" in page.locator("#changes").inner_text()


@pytest.mark.parametrize("name", ["failing", "hostile"])
def test_a_trial_that_was_lost_has_its_reason(opened, name):
    page = opened(name, viewport=WIDE)
    lost = page.locator(".trials tr.lost")
    assert lost.count() > 0
    for i in range(lost.count()):
        assert lost.nth(i).locator("xpath=following-sibling::tr[1]//pre").inner_text().strip()


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


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_each_treatment_has_a_bar_whose_parts_fill_it(opened, size):
    """Where connections are is drawn for each treatment, with the same words beside it."""
    page = opened("limits", viewport=size)
    bars = page.locator("#limits .bar")
    assert bars.count() == page.locator("#limits .account").count() > 2
    for bar in bars.all():
        parts = bar.locator(".part").all()
        widths = [float(part.get_attribute("width").rstrip("%")) for part in parts]
        assert sum(widths) == pytest.approx(100, abs=0.5)
        assert "connections" in bar.get_attribute("aria-label")
    marks = page.locator("#limits .worth tbody tr:not(.axis)")
    assert marks.count() == 4
    assert "the limit" in marks.first.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
