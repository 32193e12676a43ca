"""The schema screens, on a real registry."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from penstock.testing.penstock_broker import PenstockBroker
from tests.console.conftest import StartConsole
from tests.console.console_process import PHONE, ConsoleProcess, Pages
from tests.registry.registries import RegistryProcess, record


@pytest.fixture(scope="module")
def registry(broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    service = RegistryProcess(broker.bootstrap, tmp_path_factory.mktemp("registry"))
    for number in range(60):
        service.register(f"many-{number:02d}-value", record("Many", "a"))
    yield service
    assert service.close() == 0


@pytest.fixture(scope="module")
def console(start_console: StartConsole, broker: PenstockBroker, registry: RegistryProcess) -> ConsoleProcess:
    return start_console("--schema-registry-url", registry.url, bootstrap=broker.bootstrap)


def test_the_list_turns_pages_and_searches(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/schemas")
    table = page.get_by_test_id("subjects")
    expect(table.get_by_text("many-00-value")).to_be_visible()
    expect(table.get_by_text("many-30-value")).to_have_count(0)
    table.get_by_role("button", name="Next page").click()
    expect(table.get_by_text("many-30-value")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("MANY-59")
    expect(table.get_by_text("many-59-value")).to_be_visible()
    expect(page.get_by_test_id("count")).to_contain_text("1 of ")


def test_versions_are_shown_and_compared(
    console: ConsoleProcess, registry: RegistryProcess, page: Page
) -> None:
    for fields in (("id",), ("id", "amount?"), ("id", "amount?", "city?")):
        registry.register("compared-value", record("Order", *fields))
    page.goto(f"{console.url}/local/schemas/compared-value")
    expect(page.get_by_test_id("fact-version")).to_have_text("3")
    expect(page.get_by_test_id("schema-text")).to_contain_text("city")
    page.get_by_test_id("version-1").click()
    expect(page.get_by_test_id("fact-version")).to_have_text("1")
    expect(page.get_by_test_id("schema-text")).not_to_contain_text("amount")
    page.get_by_test_id("version-3").click()
    expect(page.get_by_test_id("fact-version")).to_have_text("3")
    page.get_by_test_id("tab-difference").click()
    expect(page.get_by_test_id("diff")).to_contain_text('"city"')
    page.get_by_test_id("compared-with").click()
    page.get_by_role("option", name="1").click()
    expect(page.get_by_test_id("diff")).to_contain_text('"amount"')


def test_what_is_not_compatible_is_not_registered(
    console: ConsoleProcess, registry: RegistryProcess, page: Page
) -> None:
    registry.register("strict-value", record("Order", "id"))
    page.goto(f"{console.url}/local/schema-register?subject=strict-value")
    _write(page, record("Order", "id", "amount"))
    page.get_by_test_id("do-register").click()
    expect(page.get_by_test_id("messages")).to_contain_text("READER_FIELD_MISSING_DEFAULT_VALUE")
    assert len(registry.ids("strict-value")) == 1
    _write(page, record("Order", "id", "amount?"))
    page.get_by_test_id("check").click()
    expect(page.get_by_test_id("banner-positive")).to_be_visible()
    expect(page.get_by_test_id("diff")).to_contain_text("amount")
    page.get_by_test_id("do-register").click()
    expect(page.get_by_test_id("fact-version")).to_have_text("2")
    assert len(registry.ids("strict-value")) == 2


def test_what_is_no_schema_is_told_in_one_line(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/schema-register")
    page.get_by_test_id("subject").fill("broken-value")
    _write(page, '{"type": "<img src=x onerror=alert(1)>"}')
    page.get_by_test_id("check").click()
    expect(page.get_by_test_id("banner-negative")).to_be_visible()
    expect(page.get_by_test_id("messages")).not_to_be_empty()


def test_a_schema_of_json_with_references_is_registered(
    console: ConsoleProcess, registry: RegistryProcess, page: Page
) -> None:
    registry.register("city-value", record("City", "name"))
    page.goto(f"{console.url}/local/schema-register")
    page.get_by_test_id("subject").fill("person-value")
    field = '{"name":"home","type":"City"}'
    _write(page, f'{{"type":"record","name":"Person","fields":[{field}]}}')
    page.get_by_test_id("references-field").fill("City city-value 1")
    page.get_by_test_id("do-register").click()
    expect(page.get_by_test_id("fact-version")).to_have_text("1")
    page.get_by_test_id("tab-references").click()
    page.get_by_test_id("references").get_by_role("link", name="city-value").click()
    page.get_by_test_id("tab-references").click()
    expect(page.get_by_test_id("referenced-by")).to_contain_text("person-value")


def test_compatibility_is_set_for_a_subject_and_taken_away(
    console: ConsoleProcess, registry: RegistryProcess, page: Page
) -> None:
    registry.register("level-value", record("Order", "id"))
    page.goto(f"{console.url}/local/schemas/level-value")
    page.get_by_test_id("tab-settings").click()
    page.get_by_test_id("level-choice").click()
    page.get_by_role("option", name="FULL_TRANSITIVE").click()
    expect(page.get_by_test_id("fact-level")).to_have_text("FULL_TRANSITIVE")
    assert registry.get("/config/level-value").json()["compatibilityLevel"] == "FULL_TRANSITIVE"
    page.get_by_test_id("level-choice").click()
    page.get_by_role("option", name="As for all subjects").click()
    expect(page.get_by_test_id("fact-level")).to_contain_text("BACKWARD")


def test_a_subject_is_deleted_softly_and_then_for_good(
    console: ConsoleProcess, registry: RegistryProcess, page: Page
) -> None:
    registry.register("gone-value", record("Order", "id"))
    page.goto(f"{console.url}/local/schemas/gone-value")
    _delete(page, "gone-value")
    expect(page.get_by_test_id("subjects")).to_be_visible()
    assert "gone-value" not in registry.subjects()
    page.goto(f"{console.url}/local/schemas/gone-value")
    expect(page.get_by_test_id("banner-warning")).to_be_visible()
    _delete(page, "gone-value")
    expect(page.get_by_test_id("subjects")).to_be_visible()
    assert "gone-value" not in registry.get("/subjects?deleted=true").json()


def test_a_subject_that_is_not_there_is_told(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/schemas/nowhere%2F%3Cb%3E")
    expect(page.get_by_test_id("banner-negative")).to_contain_text("nowhere/<b>")
    expect(page.get_by_test_id("title")).to_have_text("nowhere/<b>")


def test_the_screens_fit_a_phone(console: ConsoleProcess, registry: RegistryProcess, pages: Pages) -> None:
    registry.register("phone-value", record("Order", "id", "a_long_name_of_a_field_that_would_be_too_wide"))
    phone = pages.open(viewport=PHONE)
    for path in ("schemas", "schemas/phone-value", "schema-register?subject=phone-value"):
        phone.goto(f"{console.url}/local/{path}")
        expect(phone.get_by_test_id("title")).to_be_visible()
        expect(phone.get_by_role("main").locator(".q-skeleton")).to_have_count(0)
        assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path


def test_a_registry_that_is_away_is_told_and_asked_again(
    start_console: StartConsole, broker: PenstockBroker, page: Page
) -> None:
    console = start_console("--schema-registry-url", "http://127.0.0.1:1", bootstrap=broker.bootstrap)
    page.goto(f"{console.url}/local/schemas")
    expect(page.get_by_test_id("banner-negative")).to_contain_text("cannot reach the schema registry")
    page.get_by_test_id("retry").click()
    expect(page.get_by_test_id("banner-negative")).to_be_visible()


def _write(page: Page, text: str) -> None:
    editor = page.get_by_test_id("editor").locator(".cm-content")
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def _delete(page: Page, subject: str) -> None:
    page.get_by_test_id("delete-subject").click()
    page.get_by_test_id("confirm-name").fill(subject)
    page.get_by_test_id("confirm-yes").click()
