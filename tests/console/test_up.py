"""The console as a service of `penstock up`: it knows what the stack has, and in a secured one lets the admin in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from penstock.client.property_files import read_properties
from penstock.security.jaas import parse_login
from tests.cli.boxes import TestBox
from tests.console.console_process import Pages, settle


def console_of(box: TestBox) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in box.status()["services"] if each["name"] == "console")
    assert found["healthy"]
    return found


@pytest.mark.parametrize("secure", [False, True])
def test_up_starts_it_when_it_is_asked_for(tmp_path: Path, secure: bool, pages: Pages) -> None:
    box = TestBox(tmp_path / "box")
    try:
        words = ["--secure"] if secure else []
        more = ["--with", "registry", "--registry-port", "0", "--with", "connect", "--connect-port", "0"]
        started = box.up_anew("--with", "console", "--console-port", "0", *more, *words)
        assert started.code == 0, started.err
        assert started.err.index("broker-1 is up") < started.err.index("console is up")
        url = f"{'https' if secure else 'http'}://127.0.0.1:{console_of(box)['port']}"
        page = pages.open(url)
        if secure:
            login = parse_login(read_properties(str(box.directory / "client.properties"))["sasl.jaas.config"])
            page.get_by_test_id("login-name").fill(login.options["username"])
            page.get_by_test_id("login-password").fill(login.options["password"])
            page.get_by_test_id("login-button").click()
        expect(page).to_have_url(f"{url}/local")
        expect(page.get_by_test_id("page")).to_be_visible()
        for screen in ("schemas", "connect"):
            page.get_by_test_id(f"menu-{screen}").click()
            expect(page).to_have_url(f"{url}/local/{screen}")
            settle(page)
            expect(page.get_by_test_id("page")).to_be_visible()
            expect(page.locator(".console-complaint")).to_have_count(0)
        expect(page.get_by_test_id("menu-sql")).to_have_count(0)
        assert "Traceback" not in (box.directory / "console.log").read_text()
    finally:
        box.close()
