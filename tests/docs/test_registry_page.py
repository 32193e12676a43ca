"""The page about the schema registry: what it shows is typed, and answers what it says."""

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from penstock.registry.acl_file import parse_rules
from penstock.registry.options import OWN_OPTIONS
from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import free_port
from penstock.web.options import WEB_OPTIONS
from tests.docs.pages import HOW_TO, ROOT, blocks
from tests.web.services import WebProcess

PAGE = (HOW_TO / "schema-registry.md").read_text()
DEADLINE_S = 60


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    directory = tmp_path_factory.mktemp("page")
    with PenstockBroker(directory, options={"group.initial.rebalance.delay.ms": "0"}) as broker:
        (start,) = blocks(PAGE, "sh")
        chosen = free_port()
        command = start.replace("localhost:9092", broker.bootstrap).replace("8081", str(chosen)).split()
        registry = WebProcess([str(ROOT / command[0]), *command[1:]], directory / "registry.log")
        yield chosen
        assert registry.close() == 0


def test_commands_answer_what_the_page_says(port: int) -> None:
    (shown,) = blocks(PAGE, "console")
    for command, answer in re.findall(r"^\$ (.*)\n(.*)\n", shown, re.MULTILINE):
        text = command.replace("8081", str(port))
        done = subprocess.run(
            ["timeout", str(DEADLINE_S), "sh", "-c", text], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, answer), f"{command}\n{done.stderr}"


def test_the_python_of_the_page_runs(port: int) -> None:
    (code,) = blocks(PAGE, "python")
    done = subprocess.run(
        [sys.executable, "-c", code.replace("8081", str(port))],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (done.returncode, done.stdout.split()[-1]) == (0, "[1]"), done.stderr


def test_the_rules_of_the_page_are_read() -> None:
    (rules,) = blocks(PAGE, "text")
    assert len(list(parse_rules(rules, super_users=frozenset()))) == 4


def test_the_properties_of_the_page_are_there() -> None:
    known = {option.name for option in (*OWN_OPTIONS, *WEB_OPTIONS)}
    named = set(re.findall(r"`([a-z]+(?:\.[a-z.]+)+)`", PAGE)) - {"kafkastore.security.protocol"}
    assert {name for name in named if not name.endswith(".properties")} <= known
