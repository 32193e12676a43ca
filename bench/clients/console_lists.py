"""Opens the console's lists of topics and groups in a real browser (Chromium) and turns their pages.

Makes the topics and the groups first, each with one partition and one offset. A first paint is from the start of the navigation
until the first row is on the screen, with the browser's cache filled. A page is from the click on "next page" until its rows are
there. Both are told by the browser's own clock.
"""

import shutil
import time
import urllib.request
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from bench.clients.options import print_result, read_options
from penstock.admin import Cluster
from penstock.admin.groups.requests import GroupRequests
from penstock.admin.topic_changes import NewTopic, create_topics
from penstock.client.cluster_client import ClusterClient
from penstock.model.ids import TopicPartition

PAINTS = 7
PAGES = 20
AT_ONCE = 500
WAIT_MS = 60_000
# Resolves when the first row is another than before, with the milliseconds since the click.
NEXT_PAGE = """
(table) => new Promise((done) => {
  const first = () => table.querySelector("tbody tr td a")?.textContent;
  const before = first(), began = performance.now();
  const seen = () => first() && first() !== before ? done(performance.now() - began) : requestAnimationFrame(seen);
  table.querySelector('[aria-label="Next page"]').click();
  requestAnimationFrame(seen);
})
"""


def make(bootstrap: str, count: int) -> None:
    with Cluster(bootstrap) as cluster:
        for begin in range(0, count, AT_ONCE):
            some = [
                NewTopic(f"topic-{number:06}", 1, 1) for number in range(begin, min(begin + AT_ONCE, count))
            ]
            cluster.change(lambda client, some=some: create_topics(client, some))  # type: ignore[misc]

        def commit(client: ClusterClient) -> None:
            groups = GroupRequests(client)
            for number in range(count):
                groups.commit(f"group-{number:06}", {TopicPartition(f"topic-{number:06}", 0): 0})

        cluster.change(commit)


def first_paints_ms(browser: Browser, url: str, name: str) -> list[float]:
    found = []
    context = browser.new_context()
    for number in range(PAINTS + 1):
        page = context.new_page()
        page.goto(url, wait_until="commit")
        page.wait_for_selector(f'[data-testid="{name}"] tbody tr a', timeout=WAIT_MS)
        if number:  # the first one fills the cache
            found.append(float(page.evaluate("performance.now()")))
        page.close()
    context.close()
    return found


def pages_ms(browser: Browser, url: str, name: str) -> list[float]:
    context = browser.new_context()
    page: Page = context.new_page()
    page.goto(url)
    table = page.wait_for_selector(f'[data-testid="{name}"] tbody tr a', timeout=WAIT_MS)
    assert table is not None
    table = page.wait_for_selector(f'[data-testid="{name}"]')
    assert table is not None
    page.wait_for_timeout(1000)  # until the page has nothing else to do
    found = [float(table.evaluate(NEXT_PAGE)) for _ in range(PAGES)]
    context.close()
    return found


def wait_until_looked(url: str, count: int, browser: Browser) -> None:
    """Until the console has seen all that was made."""
    page = browser.new_page()
    deadline_s = time.monotonic() + WAIT_MS / 1000
    for name in ("topics", "groups"):
        page.goto(f"{url}/local/{name}")
        while f"{count:,}" not in (page.get_by_test_id("count").text_content(timeout=WAIT_MS) or ""):
            if time.monotonic() > deadline_s:
                raise SystemExit(f"the console has not seen {count} {name}")
            page.wait_for_timeout(200)
    page.close()


def main(options: dict[str, Any]) -> dict[str, float]:
    url, count = options["url"], options["count"]
    make(options["bootstrap"], count)
    urllib.request.urlopen(f"{url}/health", timeout=10).close()
    result: dict[str, float] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
        )
        wait_until_looked(url, count, browser)
        for name in ("topics", "groups"):
            paints = sorted(first_paints_ms(browser, f"{url}/local/{name}", name))
            pages = sorted(pages_ms(browser, f"{url}/local/{name}", name))
            result |= {
                f"{name}_paint_ms": paints[len(paints) // 2],
                f"{name}_paint_max_ms": paints[-1],
                f"{name}_page_ms": pages[len(pages) // 2],
                f"{name}_page_max_ms": pages[-1],
            }
        browser.close()
    return result


if __name__ == "__main__":
    print_result(**main(read_options()))
