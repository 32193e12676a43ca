"""A console on a real broker, and a real browser. A file shares one console and one browser among its tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from penstock.testing.penstock_broker import PenstockBroker
from tests.console.console_process import PHONE, TIMEOUT_MS, ConsoleProcess, Pages, chromium

expect.set_options(timeout=TIMEOUT_MS)

StartConsole = Callable[..., ConsoleProcess]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not of the whole session: while it is there a loop runs in this thread, and tests of other files could not run one."""
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def start_console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartConsole]:
    """`start_console("--config", path)`, `start_console(bootstrap=broker.bootstrap, login=True)`; stopped in the end."""
    started: list[ConsoleProcess] = []
    numbers = itertools.count(1)
    folder = tmp_path_factory.mktemp("console")

    def start(*arguments: str, bootstrap: str | None = None, login: bool = False) -> ConsoleProcess:
        log_path = folder / f"console-{next(numbers)}.log"
        started.append(ConsoleProcess(log_path, *arguments, bootstrap=bootstrap, login=login))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture(scope="module")
def console(start_console: StartConsole, broker: PenstockBroker) -> ConsoleProcess:
    """Over the shared broker, without a login; its cluster is `local`."""
    return start_console(bootstrap=broker.bootstrap)


@pytest.fixture
def pages(browser: Browser) -> Iterator[Pages]:
    """Opens pages: `pages.open(url, viewport=PHONE, locale="pt-BR", dark=True)`. An error in any of them fails the test."""
    opened = Pages(browser)
    yield opened
    opened.close()
    assert not opened.errors, opened.errors


@pytest.fixture
def page(pages: Pages) -> Page:
    """A page of a desktop, without an address yet."""
    return pages.open()


@pytest.fixture
def phone(pages: Pages) -> Page:
    return pages.open(viewport=PHONE)
