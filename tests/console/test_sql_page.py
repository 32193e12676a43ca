"""The SQL screen, on a real server with its Spark: the only file of these tests that starts a JVM."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.driver import wait_until
from tests.console.conftest import StartConsole
from tests.console.console_process import PHONE, ConsoleProcess, Pages
from tests.sql.servers import SqlServerProcess, bugs

pytestmark = pytest.mark.timeout(300)
LONG_MS = 60_000


@pytest.fixture(scope="module")
def server(broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServerProcess]:
    running = SqlServerProcess(tmp_path_factory.mktemp("sql"), broker.bootstrap)
    made = "WITH (KAFKA_TOPIC = 'console-orders', VALUE_FORMAT = 'JSON', PARTITIONS = 1)"
    running.ksql(f"CREATE STREAM orders (customer STRING KEY, item STRING, amount INT) {made};")
    running.ksql("INSERT INTO orders VALUES ('ana', '<b>tea</b>', 7);")
    running.ksql("INSERT INTO orders VALUES ('ben', 'pot', 40);")
    yield running
    assert running.close() == 0
    assert bugs(running.log) == []


@pytest.fixture(scope="module")
def console(start_console: StartConsole, broker: PenstockBroker, server: SqlServerProcess) -> ConsoleProcess:
    return start_console("--sql-url", server.url, bootstrap=broker.bootstrap)


def test_statements_are_run_and_their_answers_shown(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/sql")
    _write(page, "SHOW STREAMS; DESCRIBE orders")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_test_id("text")).to_contain_text("ORDERS")
    expect(page.get_by_test_id("text")).to_contain_text("VARCHAR(STRING)")
    expect(page.get_by_test_id("told")).to_contain_text("ended")


def test_the_name_of_a_stream_is_no_script(
    console: ConsoleProcess, server: SqlServerProcess, page: Page
) -> None:
    name = 'x" :title="globalThis.wasRun = 1'
    made = "WITH (KAFKA_TOPIC = 'console-orders', VALUE_FORMAT = 'JSON')"
    server.ksql(f"CREATE STREAM `{name}` (item STRING) {made};")
    page.goto(f"{console.url}/local/sql")
    expect(page.get_by_test_id("names").get_by_text(name)).to_be_visible()
    assert page.evaluate("globalThis.wasRun === undefined")
    server.ksql(f"DROP STREAM `{name}`;")


def test_rows_come_as_they_are_made_until_one_stops(
    console: ConsoleProcess, server: SqlServerProcess, page: Page
) -> None:
    page.goto(f"{console.url}/local/sql")
    _write(page, "SELECT * FROM orders EMIT CHANGES;")
    page.get_by_test_id("run").click()
    expect(page.get_by_test_id("rows")).to_contain_text("<b>tea</b>")
    server.ksql("INSERT INTO orders VALUES ('eva', 'late', 1);")
    expect(page.get_by_test_id("rows")).to_contain_text("late")
    expect(page.get_by_test_id("run")).to_be_disabled()
    page.get_by_test_id("stop").click()
    expect(page.get_by_test_id("told")).to_contain_text("ended")
    wait_until(
        lambda: not [each for each in server.query_ids() if "transient" in each], "the end of the query"
    )


def test_a_query_ends_with_the_page_that_ran_it(
    console: ConsoleProcess, server: SqlServerProcess, pages: Pages
) -> None:
    page = pages.open(f"{console.url}/local/sql")
    _write(page, "SELECT customer FROM orders EMIT CHANGES;")
    page.get_by_test_id("run").click()
    expect(page.get_by_test_id("rows")).to_contain_text("ana")
    page.close()
    wait_until(
        lambda: not [each for each in server.query_ids() if "transient" in each], "the end of the query"
    )


def test_a_mistake_is_told_and_the_next_run_works(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/sql")
    _write(page, "SELECT nothing FROM <img src=x>;")
    page.get_by_test_id("run").click()
    expect(page.get_by_test_id("banner-negative")).to_be_visible()
    _write(page, "RUN SCRIPT '/etc/passwd';")
    page.get_by_test_id("run").click()
    expect(page.get_by_test_id("banner-negative")).to_contain_text("RUN SCRIPT")
    assert "root:" not in page.content()
    _write(page, "SHOW TABLES;")
    page.get_by_test_id("run").click()
    expect(page.get_by_test_id("text")).to_contain_text("Table Name")


def test_names_are_completed(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/sql")
    expect(page.get_by_test_id("name-ORDERS")).to_be_visible()
    _write(page, "SELECT * FROM ")
    page.keyboard.type("ORDE")
    page.locator(".cm-tooltip-autocomplete li").filter(has_text="ORDERS").click()
    expect(page.get_by_test_id("editor")).to_contain_text("SELECT * FROM ORDERS")
    page.get_by_test_id("name-ORDERS").click()
    expect(page.get_by_test_id("name-ORDERS")).to_contain_text("AMOUNT")


def test_queries_are_drawn_explained_terminated_and_their_results_dropped(
    console: ConsoleProcess, server: SqlServerProcess, page: Page, pages: Pages
) -> None:
    page.goto(f"{console.url}/local/sql")
    _write(page, "CREATE STREAM big AS SELECT * FROM orders WHERE amount > 10;")
    page.get_by_test_id("run").click()
    expect(page.get_by_test_id("told")).to_contain_text("ended", timeout=LONG_MS)
    page.get_by_test_id("tab-graph").click()
    expect(page.get_by_test_id("graph").locator("canvas")).to_be_visible()
    page.get_by_test_id("tab-queries").click()
    row = page.get_by_test_id("queries").get_by_role("row", name="CSAS_BIG")
    expect(row).to_contain_text("LONG_TASKS")
    row.get_by_test_id("explain").click()
    expect(page.get_by_test_id("explained")).to_contain_text("FILTER")
    page.get_by_role("button", name="Close").click()
    pipelines = pages.open(f"{console.url}/local/pipelines")
    expect(pipelines.get_by_test_id("pipelines").get_by_role("row", name="CSAS_BIG")).to_contain_text(
        "LONG_TASKS"
    )
    row.get_by_test_id("terminate").click()
    page.get_by_test_id("confirm-yes").click()
    expect(row).to_have_count(0, timeout=LONG_MS)
    page.get_by_test_id("tab-sources").click()
    page.get_by_test_id("sources").get_by_role("row", name="BIG").get_by_test_id("drop").click()
    page.get_by_test_id("confirm-yes").click()
    expect(page.get_by_test_id("sources").get_by_role("row", name="BIG")).to_have_count(0, timeout=LONG_MS)


def test_a_log_has_no_values_of_statements(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/sql")
    _write(page, "INSERT INTO orders VALUES ('secret-customer', 'x', 424242);")
    page.get_by_test_id("run").click()
    expect(page.get_by_test_id("told")).to_contain_text("ended")
    assert "INSERT INTO orders VALUES" in console.log
    assert "secret-customer" not in console.log
    assert "424242" not in console.log


def test_the_screen_fits_a_phone(console: ConsoleProcess, pages: Pages) -> None:
    phone = pages.open(f"{console.url}/local/sql", viewport=PHONE)
    expect(phone.get_by_test_id("name-ORDERS")).to_be_visible()
    assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def _write(page: Page, text: str) -> None:
    page.get_by_test_id("editor").locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)
