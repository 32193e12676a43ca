"""The frame around all screens, in a real browser: menu, keys, light and dark, languages, a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from penstock.console.words import LANGUAGES, words
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.console.conftest import StartConsole
from tests.console.console_process import PHONE, ConsoleProcess, Pages, settle
from tests.console.test_roles import addresses


@pytest.fixture(scope="module", autouse=True)
def _topic(broker: PenstockBroker) -> None:
    create_topic(broker.bootstrap, "frame-orders", partitions=2)


def ready(page: Page) -> None:
    expect(page.get_by_test_id("page")).to_be_visible()
    page.wait_for_function("window.did_handshake === true")


def test_the_first_page_is_the_overview_of_the_first_cluster(console: ConsoleProcess, page: Page) -> None:
    page.goto(console.url)
    expect(page).to_have_url(f"{console.url}/local")
    ready(page)
    expect(page.get_by_test_id("menu-overview")).to_have_attribute("aria-current", "page")
    expect(page.locator("[aria-current=page]")).to_have_count(1)
    expect(page).to_have_title("Overview · local · Penstock")


def test_every_screen_of_the_menu_opens_and_is_marked_there(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local")
    ready(page)
    names = page.locator("[data-testid^=menu-]:not(button)").evaluate_all(
        "found => found.map(one => one.dataset.testid)"
    )
    assert {
        "menu-overview",
        "menu-topics",
        "menu-messages",
        "menu-groups",
        "menu-security",
        "menu-cluster",
    } <= set(names)
    assert not {"menu-schemas", "menu-connect", "menu-sql"} & set(names), "this cluster has none of these"
    for name in names:
        page.get_by_test_id(name).click()
        expect(page.get_by_test_id(name)).to_have_attribute("aria-current", "page")
        ready(page)
        assert page.locator(".console-complaint").count() == 0, name


def test_the_place_of_a_topic_is_marked_in_the_menu(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/topics/frame-orders")
    ready(page)
    expect(page.locator("[aria-current=page]")).to_have_attribute("data-testid", "menu-topics")


def test_keys_lead_through_the_console(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local")
    ready(page)
    page.keyboard.type("gt")
    expect(page).to_have_url(f"{console.url}/local/topics")
    ready(page)
    page.keyboard.press("/")
    field = page.locator(":focus")
    expect(field).to_have_attribute("type", "text")
    page.keyboard.type("g?/")
    expect(field).to_have_value("g?/")
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    expect(page.get_by_test_id("help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("help")).to_have_count(0)
    page.keyboard.type("go")
    expect(page).to_have_url(f"{console.url}/local")


def test_the_menu_can_be_used_with_tab_and_enter(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local")
    ready(page)
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.testid") == "menu-topics":
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "one sees where one is"
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{console.url}/local/topics")


def test_light_and_dark_are_remembered(console: ConsoleProcess, pages: Pages) -> None:
    page = pages.open(f"{console.url}/local")
    ready(page)
    body = page.locator("body")
    expect(body).not_to_have_class("body--dark")
    page.get_by_test_id("theme-button").click()
    expect(body).to_contain_class("body--dark")
    page.goto(f"{console.url}/local/topics")
    ready(page)
    expect(body).to_contain_class("body--dark")
    page.get_by_test_id("theme-button").click()
    expect(body).to_contain_class("body--light")
    page.reload()
    ready(page)
    expect(body).to_contain_class("body--light")


def test_without_a_choice_the_theme_is_that_of_the_system(console: ConsoleProcess, pages: Pages) -> None:
    page = pages.open(f"{console.url}/local", dark=True)
    ready(page)
    expect(page.locator("body")).to_contain_class("body--dark")


def test_the_language_is_the_browsers_until_another_is_chosen(console: ConsoleProcess, pages: Pages) -> None:
    page = pages.open(f"{console.url}/local/topics", locale="pt-BR")
    ready(page)
    expect(page.get_by_test_id("menu-topics")).to_contain_text("Tópicos")
    page.get_by_test_id("language-button").click()
    page.get_by_test_id("language-en").click()
    expect(page.get_by_test_id("menu-topics")).to_contain_text("Topics")
    page.goto(f"{console.url}/local")
    expect(page.get_by_test_id("menu-topics")).to_contain_text("Topics")


@pytest.mark.parametrize("language", [code for code in LANGUAGES if code != "en"])
def test_every_word_is_there_in_every_language(language: str) -> None:
    english, other = words("en"), words(language)
    assert sorted(english.keys() - other.keys()) == []
    assert sorted(other.keys() - english.keys()) == []


@pytest.mark.parametrize("language", [code for code in LANGUAGES if code != "en"])
def test_a_translation_has_the_same_gaps_to_fill(language: str) -> None:
    import re

    other = words(language)
    gaps = {key: sorted(re.findall(r"\{(\w+)", text)) for key, text in words("en").items()}
    assert [
        key for key in gaps if key in other and sorted(re.findall(r"\{(\w+)", other[key])) != gaps[key]
    ] == []


def test_nothing_is_wider_than_a_phone(console: ConsoleProcess, phone: Page, pages: Pages) -> None:
    for path in addresses():
        phone.goto(console.url + path)
        settle(phone)
        assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
    pages.forget_errors("404")


def test_on_a_phone_the_menu_is_behind_a_button(console: ConsoleProcess, phone: Page) -> None:
    phone.goto(f"{console.url}/local")
    ready(phone)
    expect(phone.get_by_test_id("menu-topics")).not_to_be_in_viewport()
    phone.get_by_test_id("menu-button").click()
    expect(phone.get_by_test_id("menu-topics")).to_be_in_viewport()
    phone.get_by_test_id("menu-topics").click()
    expect(phone).to_have_url(f"{console.url}/local/topics")
    ready(phone)
    expect(phone.get_by_test_id("menu-topics")).not_to_be_in_viewport()


def test_one_console_shows_several_clusters(
    start_console: StartConsole, broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory, page: Page
) -> None:
    file = tmp_path_factory.mktemp("settings") / "console.yaml"
    file.write_text(
        f"clusters:\n- {{name: first, bootstrap: '{broker.bootstrap}'}}\n- {{name: second, bootstrap: '127.0.0.1:9'}}\n"
    )
    console = start_console("--config", str(file))
    page.goto(f"{console.url}/first/topics")
    ready(page)
    page.get_by_test_id("cluster-switch").click()
    page.get_by_test_id("cluster-second").click()
    expect(page).to_have_url(f"{console.url}/second/topics")
    ready(page)


def test_a_page_whose_broker_goes_away_says_so_and_recovers(
    start_console: StartConsole, tmp_path_factory: pytest.TempPathFactory, page: Page
) -> None:
    directory = tmp_path_factory.mktemp("broker")
    first = PenstockBroker(directory)
    console = start_console(bootstrap=first.bootstrap)
    page.goto(f"{console.url}/local")
    ready(page)
    port = first.port
    first.process.kill()
    second = None
    try:
        page.goto(f"{console.url}/local/topics")
        ready(page)
        second = PenstockBroker(directory, port=port)
        create_topic(second.bootstrap, "after-the-crash", partitions=1)
        expect(page.get_by_text("after-the-crash").first).to_be_visible(timeout=60_000)
    finally:
        first.stop()
        if second is not None:
            second.stop()


def test_browsers_that_have_left_leave_nothing_behind(console: ConsoleProcess, pages: Pages) -> None:
    """Their websockets are closed, and what they looked at is let go."""

    def sockets() -> int:
        found = console.ask("GET", "/metrics").body.decode()
        line = next(each for each in found.splitlines() if each.startswith("process_open_fds"))
        return int(float(line.split()[1]))

    before = sockets()
    opened = [pages.open(f"{console.url}/local") for _ in range(4)]
    for each in opened:
        ready(each)
    assert sockets() >= before + 4
    for each in opened:
        each.context.close()
    page = pages.open(f"{console.url}/local/topics")
    ready(page)
    page.wait_for_function(
        """async before => {
            const text = await (await fetch('/metrics')).text();
            return Number(text.match(/process_open_fds (\\S+)/)[1]) <= before + 8;
        }""",
        arg=before,
        polling=200,
    )
