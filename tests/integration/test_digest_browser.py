"""The digest's page in a real browser: both widths, both schemes, sorting, paper, no script."""

import pytest

from golden.report import digests
from integration.browser_steps import PHONE, WIDE, browsing, watched
from mydyno.report.digestpage import render_digest

pytestmark = pytest.mark.browser

_NAMES = ("shop", "hostile", "nothing")


@pytest.fixture(scope="module")
def chromium():
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("digests")
    for name in _NAMES:
        page = render_digest(getattr(digests, name)(), f"{name}.log</title><script>x</script>")
        (made / f"{name}.html").write_text(page, encoding="utf-8")
    return made


@pytest.fixture
def opened(chromium, folder):
    with watched(chromium, folder, "h1") as open_:
        yield open_


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE])
@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("name", _NAMES)
def test_it_opens_and_fits(opened, name, size, scheme, script):
    page = opened(name, viewport=size, color_scheme=scheme, script=script)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("h1").bounding_box()["y"] < size["height"] / 2


def test_the_profile_is_sorted_by_any_column_by_keyboard(opened):
    page = opened("shop", viewport=WIDE)
    assert _column(page, 0) == [str(i) for i in range(1, 11)]
    button = page.get_by_role("button", name="Calls")
    button.focus()
    page.keyboard.press("Enter")
    calls = [int("".join(c.split())) for c in _column(page, 4)]
    assert calls == sorted(calls, reverse=True)
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    page.keyboard.press("Enter")
    assert [int("".join(c.split())) for c in _column(page, 4)] == sorted(calls)
    page.get_by_role("button", name="Statement").click()
    names = page.locator(".profile tbody th").all_inner_texts()
    assert names[0].startswith("administrator")
    page.get_by_role("button", name="Rank").click()
    assert _column(page, 0) == [str(i) for i in range(1, 11)]


def test_without_script_the_profile_is_as_it_was_asked_for(opened):
    page = opened("shop", viewport=WIDE, script=False)
    assert page.locator(".profile thead button").count() == 0
    assert page.locator(".profile tbody tr").count() == 10
    assert page.locator("#windows rect.solid").count() > 300
    assert page.locator("article svg[role=img]").count() == 10


def test_drawings_have_a_size_and_names(opened):
    page = opened("shop", viewport=PHONE)
    for drawn in page.locator(".plot > svg").all():
        box = drawn.bounding_box()
        assert box["width"] > 150
        assert box["height"] > 60
    assert page.locator("svg[role=img]:not([aria-label])").count() == 0


def test_a_row_leads_to_its_class(opened):
    page = opened("shop", viewport=WIDE)
    page.locator(".profile tbody a").nth(4).click()
    assert page.locator("article:target h3").inner_text().startswith("5. ")


def test_hostile_text_does_nothing(opened):
    page = opened("hostile", viewport=WIDE)
    assert page.title().startswith("hostile.log</title><script>")
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 1
    assert "</script>" in page.locator(".statement").first.inner_text()


def test_on_paper_everything_is_open(opened):
    page = opened("shop", viewport=WIDE)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0


def _column(page, number):
    return page.locator(f".profile tbody td:nth-of-type({max(number, 1)})").all_inner_texts()
