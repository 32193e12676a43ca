"""The screens of Connect, on a real worker with connectors of files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from penstock.testing.penstock_broker import PenstockBroker
from tests.connect.workers import Worker, group_properties, until
from tests.console.conftest import StartConsole
from tests.console.console_process import PHONE, ConsoleProcess, Pages

SOURCE = {"connector.class": "FileStreamSource", "tasks.max": "1"}


@pytest.fixture(scope="module")
def worker(broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    service = Worker(tmp_path_factory.mktemp("connect"), group_properties(broker.bootstrap))
    yield service
    assert service.close() == 0


@pytest.fixture(scope="module")
def console(start_console: StartConsole, broker: PenstockBroker, worker: Worker) -> ConsoleProcess:
    return start_console("--connect-url", worker.url, bootstrap=broker.bootstrap)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    file = tmp_path / "lines.txt"
    file.write_text("one\ntwo\nthree\n")
    return file


def test_a_connector_is_made_with_the_form_of_its_plugin(
    console: ConsoleProcess, worker: Worker, page: Page, lines: Path
) -> None:
    page.goto(f"{console.url}/local/connect")
    page.get_by_test_id("create").click()
    page.get_by_test_id("search").fill("filestreamsource")
    page.get_by_test_id("plugins").get_by_role("link", name="FileStreamSourceConnector", exact=True).click()
    page.get_by_test_id("connector-name").fill("from-form")
    page.get_by_test_id("field-tasks.max").fill("many")
    expect(page.get_by_test_id("error-tasks.max")).not_to_be_empty()
    expect(page.get_by_test_id("error-topic")).not_to_be_empty()
    page.get_by_test_id("send").click()
    expect(page.get_by_role("alert").filter(has_text="settings are wrong")).to_be_visible()
    page.get_by_test_id("field-tasks.max").fill("1")
    page.get_by_test_id("field-topic").fill("from-form")
    page.get_by_test_id("field-file").fill(str(lines))
    expect(page.get_by_test_id("summary")).to_have_text("The worker accepts this configuration.")
    page.get_by_test_id("send").click()
    expect(page.get_by_test_id("state")).to_have_text("running")
    worker.wait_for("from-form", "RUNNING", "RUNNING")
    _, config = worker.call("GET", "/connectors/from-form/config")
    kind = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    expected = {"connector.class": kind, "tasks.max": "1", "topic": "from-form", "file": str(lines)}
    assert config == {**expected, "name": "from-form"}


def test_settings_that_others_bring_with_them_come_into_the_form(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/connect-new?class=FileStreamSource")
    page.get_by_test_id("as-json").click()
    kind = "org.apache.kafka.connect.transforms.HoistField$Value"
    page.get_by_test_id("json").fill(
        f'{{"topic": "a", "transforms": "wrap", "transforms.wrap.type": "{kind}"}}'
    )
    page.get_by_test_id("json-take").click()
    expect(page.get_by_test_id("field-transforms.wrap.field")).to_be_visible()
    expect(page.get_by_test_id("error-transforms.wrap.field")).not_to_be_empty()


def test_a_task_that_failed_is_shown_with_its_trace_and_started_again(
    console: ConsoleProcess, worker: Worker, page: Page, tmp_path: Path
) -> None:
    missing = tmp_path / "later"
    config = {
        "connector.class": "FileStreamSink",
        "file": str(missing / "out.txt"),
        "topics": "failing",
        "tasks.max": "1",
    }
    worker.create("failing", config)
    worker.wait_for("failing", "RUNNING", "FAILED")
    page.goto(f"{console.url}/local/connect")
    expect(page.get_by_test_id("failed")).to_have_text("1 failed")
    page.get_by_test_id("connectors").get_by_role("link", name="failing").click()
    page.get_by_test_id("trace-0").click()
    expect(page.get_by_test_id("trace-0")).to_contain_text("Traceback")
    expect(page.get_by_test_id("tasks")).to_contain_text("cannot be written")
    missing.mkdir()
    page.get_by_test_id("restart_failed").click()
    expect(page.get_by_test_id("fact-tasks")).to_have_text("1 running")


def test_a_connector_is_paused_resumed_and_stopped(
    console: ConsoleProcess, worker: Worker, page: Page, lines: Path
) -> None:
    worker.create("states", {**SOURCE, "topic": "states", "file": str(lines)})
    worker.wait_for("states", "RUNNING", "RUNNING")
    page.goto(f"{console.url}/local/connect")
    row = page.get_by_test_id("connectors").get_by_role("row", name="states")
    row.get_by_test_id("pause").click()
    expect(row).to_contain_text("paused")
    row.get_by_role("link", name="states").click()
    page.get_by_test_id("resume").click()
    expect(page.get_by_test_id("state")).to_have_text("running")
    page.get_by_test_id("stop").click()
    expect(page.get_by_test_id("state")).to_have_text("stopped")
    worker.wait_for("states", "STOPPED")


def test_offsets_of_a_stopped_connector_are_changed_and_reset(
    console: ConsoleProcess, worker: Worker, page: Page, lines: Path
) -> None:
    worker.create("placed", {**SOURCE, "topic": "placed", "file": str(lines)})
    until(lambda: _offsets(worker, "placed"), "offsets")
    page.goto(f"{console.url}/local/connect/placed")
    page.get_by_test_id("tab-offsets").click()
    expect(page.get_by_test_id("offsets")).to_contain_text("position")
    expect(page.get_by_test_id("offset-edit")).to_have_count(0)
    page.get_by_test_id("stop").click()
    worker.wait_for("placed", "STOPPED")
    page.get_by_test_id("offset-edit").click()
    page.get_by_test_id("offset-value").fill("not json")
    page.get_by_test_id("offset-save").click()
    expect(page.get_by_role("alert").filter(has_text="not the JSON")).to_be_visible()
    page.get_by_test_id("offset-edit").click()
    page.get_by_test_id("offset-value").fill('{"position": 4}')
    page.get_by_test_id("offset-save").click()
    expect(page.get_by_test_id("offsets")).to_contain_text('{"position": 4}')
    assert [one["offset"] for one in _offsets(worker, "placed")] == [{"position": 4}]
    page.get_by_test_id("offsets-reset").click()
    page.get_by_test_id("confirm-yes").click()
    expect(page.get_by_test_id("offsets")).to_contain_text("no offsets")


def test_a_configuration_is_changed_and_secrets_are_hidden(
    console: ConsoleProcess, worker: Worker, page: Page, lines: Path
) -> None:
    worker.create("changed", {**SOURCE, "topic": "changed", "file": str(lines), "some.password": "s3cret"})
    page.goto(f"{console.url}/local/connect/changed")
    page.get_by_test_id("tab-config").click()
    expect(page.get_by_test_id("config")).to_contain_text("some.password")
    assert "s3cret" not in page.content()
    page.get_by_test_id("edit").click()
    page.get_by_test_id("field-tasks.max").fill("2")
    page.get_by_test_id("send").click()
    expect(page.get_by_test_id("state")).to_be_visible()
    _, config = worker.call("GET", "/connectors/changed/config")
    assert (config["tasks.max"], config["some.password"]) == ("2", "s3cret")
    assert "s3cret" not in console.log


def test_a_connector_is_deleted_by_who_types_its_name(
    console: ConsoleProcess, worker: Worker, page: Page, lines: Path
) -> None:
    name = "odd <b>name</b>/slash"
    worker.create(name, {**SOURCE, "topic": "odd", "file": str(lines)})
    page.goto(f"{console.url}/local/connect")
    page.get_by_test_id("connectors").get_by_role("link", name=name).click()
    expect(page.get_by_test_id("title")).to_have_text(name)
    page.get_by_test_id("delete").click()
    expect(page.get_by_test_id("confirm-yes")).to_be_disabled()
    page.get_by_test_id("confirm-name").fill(name)
    page.get_by_test_id("confirm-name").press("Enter")
    expect(page.get_by_test_id("connectors")).to_be_visible()
    assert name not in worker.call("GET", "/connectors")[1]


def test_the_screens_fit_a_phone(console: ConsoleProcess, worker: Worker, pages: Pages, lines: Path) -> None:
    worker.create("on-a-phone", {**SOURCE, "topic": "phone", "file": str(lines)})
    phone = pages.open(viewport=PHONE)
    for path in ("connect", "connect/on-a-phone", "connect-new", "connect-new?class=FileStreamSource"):
        phone.goto(f"{console.url}/local/{path}")
        expect(phone.get_by_test_id("title")).to_be_visible()
        expect(phone.get_by_role("main").locator(".q-skeleton")).to_have_count(0)
        assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path


def test_a_worker_that_is_away_is_told(
    start_console: StartConsole, broker: PenstockBroker, page: Page
) -> None:
    console = start_console("--connect-url", "http://127.0.0.1:1", bootstrap=broker.bootstrap)
    page.goto(f"{console.url}/local/connect")
    expect(page.get_by_test_id("banner-negative")).to_contain_text("no Connect worker answers")


def _offsets(worker: Worker, name: str) -> list[dict[str, object]]:
    status, found = worker.call("GET", f"/connectors/{name}/offsets")
    return list(found["offsets"]) if status == 200 else []
