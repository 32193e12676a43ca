"""The page about the console: its files are read, and its commands start one."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from penstock.console.access.actions import Action
from penstock.console.access.roles import BUILT_IN
from penstock.console.settings.reading import settings_of
from penstock.testing.penstock_broker import PenstockBroker
from penstock.web.users_file import hashed
from tests.docs.pages import HOW_TO, blocks
from tests.web.services import WebProcess

PAGE = HOW_TO / "console.md"
CLUSTER = "clusters: [{name: production, bootstrap: 'kafka-1:9092'}]\n"


@pytest.mark.parametrize("text", blocks(PAGE.read_text(), "yaml"))
def test_each_file_of_the_page_is_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text("security.protocol=SASL_SSL\n")
    whole = text if text.startswith("clusters:") else CLUSTER + text
    settings_of(whole, file=str(tmp_path / "console.yaml"), environment={"CONSOLE_SECRET": "x"})


def test_each_command_of_the_page_starts_a_console(broker: PenstockBroker, tmp_path: Path) -> None:
    hash_of_ana = hashed("ana", salt=b"0" * 16, iterations=1000)
    settings = {
        "clusters": [{"name": "local", "bootstrap": broker.bootstrap}],
        "login": {"method": "users", "users": [{"name": "ana", "password": hash_of_ana, "roles": ["admin"]}]},
    }
    (tmp_path / "console.yaml").write_text(json.dumps(settings))
    shown = "\n".join(blocks(PAGE.read_text(), "sh")).replace("\\\n", " ")
    commands = [line for line in shown.splitlines() if line.startswith("bin/penstock console")]
    assert len(commands) == 3
    for number, line in enumerate(commands):
        words = shlex.split(line)[1:]
        for old, new in (("8000", "0"), ("localhost:9092", broker.bootstrap), ("0.0.0.0", "127.0.0.1"),
                         ("console.yaml", str(tmp_path / "console.yaml"))):  # fmt: skip
            words = [new if word == old else word for word in words]
        if "--port" not in words:
            words += ["--port", "0"]
        if "--config" not in words and "--bootstrap-server" not in words:
            words += ["--bootstrap-server", broker.bootstrap]
        console = WebProcess(
            [sys.executable, "-m", "penstock", *words], tmp_path / f"{number}.log", name="console"
        )
        try:
            assert console.ask("GET", "/health").status == 200
            assert ("with the password" in console.log) == ("--config" not in words)
        finally:
            console.close()


def test_the_page_names_each_role_and_each_action() -> None:
    named = set(re.findall(r"`([a-z-]+)`", PAGE.read_text()))
    assert {action.value for action in Action} | set(BUILT_IN) <= named
