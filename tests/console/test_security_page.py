"""The security screen, on a broker that has an authorizer."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from penstock.admin import Cluster
from penstock.testing.penstock_broker import PenstockBroker
from tests.console.conftest import StartConsole
from tests.console.console_process import PHONE, ConsoleProcess, Pages


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    options = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with PenstockBroker(tmp_path_factory.mktemp("guarded"), options=options) as running:
        yield running


@pytest.fixture(scope="module")
def console(start_console: StartConsole, guarded: PenstockBroker) -> ConsoleProcess:
    return start_console(bootstrap=guarded.bootstrap)


def test_a_user_is_made_given_a_password_and_removed(
    console: ConsoleProcess, guarded: PenstockBroker, page: Page
) -> None:
    page.goto(f"{console.url}/local/security")
    page.get_by_test_id("create-user").click()
    page.get_by_test_id("user").fill("ana")
    page.get_by_test_id("generate").click()
    expect(page.get_by_test_id("password")).not_to_have_value("")
    page.get_by_test_id("password").fill("s3cret-of-ana")
    page.get_by_test_id("save-user").click()
    row = page.get_by_test_id("users").get_by_role("row", name="ana")
    expect(row).to_contain_text("SCRAM-SHA-512")
    with Cluster(guarded.bootstrap) as cluster:
        assert [each.name for each in cluster.users.list()] == ["ana"]
    row.get_by_test_id("password").click()
    page.get_by_test_id("user-dialog").get_by_test_id("password").fill("an0ther")
    page.get_by_test_id("save-user").click()
    expect(page.get_by_role("alert").filter(has_text="The password of ana is set").first).to_be_visible()
    row.get_by_test_id("remove").click()
    page.get_by_test_id("confirm-name").fill("ana")
    page.get_by_test_id("confirm-yes").click()
    expect(row).to_have_count(0)
    assert "s3cret-of-ana" not in console.log
    assert "an0ther" not in console.log


def test_rules_for_a_consumer_are_made_found_and_removed(
    console: ConsoleProcess, guarded: PenstockBroker, page: Page
) -> None:
    page.goto(f"{console.url}/local/security?tab=acls")
    page.get_by_test_id("add-rules").click()
    page.get_by_test_id("rule-principal").fill("User:ben")
    page.get_by_test_id("rule-topic").fill("orders")
    page.get_by_test_id("rule-group").fill("billing")
    page.get_by_test_id("save-rules").click()
    expect(page.get_by_test_id("rules-count")).to_have_text("3 of 3 rules")
    page.get_by_test_id("search-rules").fill("billing")
    expect(page.get_by_test_id("rules-count")).to_have_text("1 of 3 rules")
    page.get_by_test_id("remove-rule").click()
    page.get_by_test_id("confirm-yes").click()
    expect(page.get_by_test_id("rules-count")).to_have_text("0 of 2 rules")
    with Cluster(guarded.bootstrap) as cluster:
        found = [(each.principal, each.operation) for each in cluster.acls.list(principal="User:ben")]
    assert sorted(found) == [("User:ben", "Describe"), ("User:ben", "Read")]


def test_who_may_and_why(console: ConsoleProcess, guarded: PenstockBroker, page: Page) -> None:
    with Cluster(guarded.bootstrap) as cluster:
        cluster.acls.add("User:eva", ["Read"], name="asked-", is_prefix=True)
        cluster.acls.add("User:eva", ["Read"], name="asked-secret", deny=True)
        cluster.acls.add("User:ivo", ["Write"], name="asked-secret")
    page.goto(f"{console.url}/local/security?tab=who")
    page.get_by_test_id("who-name").fill("asked-open")
    page.get_by_test_id("who-name").press("Enter")
    eva = page.get_by_test_id("who").get_by_role("row", name="User:eva").first
    expect(eva).to_contain_text("Yes")
    expect(eva).to_contain_text("asked-…")
    page.get_by_test_id("who-name").fill("asked-secret")
    page.get_by_test_id("who-ask").click()
    expect(eva).to_contain_text("a rule forbids it")
    expect(page.get_by_test_id("who").get_by_role("row", name="User:ivo")).to_contain_text(
        "no rule allows it"
    )
    anonymous = page.get_by_test_id("who").get_by_role("row", name="User:ANONYMOUS")
    expect(anonymous).to_contain_text("super.users")


def test_quotas_are_set_changed_and_removed(
    console: ConsoleProcess, guarded: PenstockBroker, page: Page
) -> None:
    page.goto(f"{console.url}/local/security?tab=quotas")
    page.get_by_test_id("set-quota").click()
    page.get_by_test_id("quota-user").fill("*")
    page.get_by_test_id("producer_byte_rate").fill("lots")
    page.get_by_test_id("save-quota").click()
    expect(page.get_by_role("alert").filter(has_text="is not a number")).to_be_visible()
    page.get_by_test_id("set-quota").click()
    page.get_by_test_id("quota-user").fill("*")
    page.get_by_test_id("producer_byte_rate").fill("5242880")
    page.get_by_test_id("request_percentage").fill("50")
    page.get_by_test_id("save-quota").click()
    row = page.get_by_test_id("quotas").get_by_role("row", name="all others")
    expect(row).to_contain_text("5 MiB/s")
    row.get_by_test_id("edit-quota").click()
    page.get_by_test_id("request_percentage").fill("")
    page.get_by_test_id("save-quota").click()
    expect(row).not_to_contain_text("request_percentage")
    with Cluster(guarded.bootstrap) as cluster:
        assert [dict(each.values) for each in cluster.quotas.list()] == [{"producer_byte_rate": 5242880.0}]
    row.get_by_test_id("remove-quota").click()
    page.get_by_test_id("confirm-yes").click()
    expect(page.get_by_test_id("quotas")).to_contain_text("No quotas are set")


def test_a_broker_without_an_authorizer_says_so(
    start_console: StartConsole, broker: PenstockBroker, page: Page
) -> None:
    console = start_console(bootstrap=broker.bootstrap)
    page.goto(f"{console.url}/local/security?tab=acls")
    expect(page.get_by_test_id("banner-negative")).to_be_visible()


def test_the_screen_fits_a_phone(console: ConsoleProcess, pages: Pages) -> None:
    phone = pages.open(viewport=PHONE)
    for tab in ("users", "acls", "who", "quotas"):
        phone.goto(f"{console.url}/local/security?tab={tab}")
        expect(phone.get_by_test_id(f"tab-{tab}")).to_be_visible()
        expect(phone.get_by_role("main").locator(".q-skeleton")).to_have_count(0)
        assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], tab
