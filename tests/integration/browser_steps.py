"""Steps that tests of pages share: a browser, a page that is watched, and what it has painted."""

from contextlib import contextmanager

from playwright.sync_api import sync_playwright

_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@contextmanager
def browsing():
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=list(_FLAGS))
        yield browser
        browser.close()


@contextmanager
def watched(chromium, folder, ready):
    """Give a way to open pages; in the end none complained, nor asked for anything but itself."""
    contexts, complaints, requests = [], [], []

    def open_(name, *, script=True, **options):
        context = chromium.new_context(java_script_enabled=script, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto((folder / f"{name}.html").as_uri())
        if script:
            page.wait_for_selector(ready)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in requests if url.startswith("file:")]) == len(contexts)


def painted(page, canvas=None):
    """Return a canvas' picture, the first one's at rest, once the browser has painted it."""
    frame = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    page.evaluate(frame)
    return (canvas or page.locator("canvas").first).evaluate("(canvas) => canvas.toDataURL()")
