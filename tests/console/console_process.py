"""The console as a process, and browsers that look at it."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.web.services import WebProcess

DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 375, "height": 812}
TIMEOUT_MS = 60_000

PageMaker = Callable[..., Page]


class ConsoleProcess(WebProcess):
    """`penstock console`. `password` is that of the start, where there is no other login."""

    def __init__(
        self, log_path: Path, *arguments: str, bootstrap: str | None = None, login: bool = False
    ) -> None:
        command = [sys.executable, "-m", "penstock", "console", "--port", "0", *arguments]
        if bootstrap is not None:
            command += ["--bootstrap-server", bootstrap]
        if not login:
            command.append("--no-login")
        super().__init__(command, log_path, name="console")

    @property
    def password(self) -> str:
        found = re.search(r"with the password (\S+)", self.log)
        assert found is not None
        return found[1]

    def stop(self) -> None:
        """And what it wrote must have no bug of its own in it."""
        self.process.stop()
        assert "Traceback" not in self.log, self.log[-6000:]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's. One for many tests: it takes a second or two to start."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
        )
        try:
            yield browser
        finally:
            browser.close()


def settle(page: Page) -> None:
    """The page is there, speaks with the console, and has looked up what it shows."""
    expect(page.get_by_test_id("page")).to_be_visible()
    page.wait_for_function("window.did_handshake === true && !document.querySelector('.q-skeleton')")


class Pages:
    """Pages of one test, each in a context of its own, as of another person; what went wrong is told in the end."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.errors: list[str] = []
        """Of the browsers' logs: a test that expects some takes them out."""

    def open(
        self,
        url: str = "",
        *,
        viewport: dict[str, int] | None = None,
        locale: str = "en-US",
        dark: bool = False,
    ) -> Page:
        context = self._browser.new_context(
            viewport=viewport or DESKTOP,  # type: ignore[arg-type]
            locale=locale,
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            ignore_https_errors=True,
        )
        context.set_default_timeout(TIMEOUT_MS)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.on(
            "console",
            lambda said: self.errors.append(f"{said.type}: {said.text}") if said.type == "error" else None,
        )
        page.on("pageerror", lambda error: self.errors.append(f"uncaught: {error}"))
        if url:
            page.goto(url)
        return page

    def close(self) -> None:
        for context in self._browser.contexts:
            context.close()

    def forget_errors(self, *parts: str) -> None:
        """Those that have one of `parts` in them were expected."""
        self.errors[:] = [one for one in self.errors if not any(part in one for part in parts)]
