"""Who may do what: logins, rules for subjects, and instances that log in at one another."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.driver import wait_until
from tests.registry.registries import RegistryProcess, code_of, record

RULES = """
allow User:writer  Read,Write             prefixed orders-
allow User:writer  AlterConfigs           literal  orders-value
allow User:reader  Read                   literal  orders-value
allow User:cleaner Delete                 any
allow User:cleaner DescribeConfigs        global
"""
USERS = "writer: w,user\nreader: r,user\ncleaner: c,user\nroot: x,admin\n"


@pytest.fixture(scope="module")
def registry(broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    directory = tmp_path_factory.mktemp("guarded")
    (directory / "users").write_text(USERS)
    (directory / "rules").write_text(RULES)
    service = RegistryProcess(
        broker.bootstrap,
        directory,
        {
            "authentication.method": "BASIC",
            "penstock.authentication.users.file": str(directory / "users"),
            "penstock.subject.acls.file": str(directory / "rules"),
            "super.users": "User:root",
        },
    )
    yield service
    assert service.close() == 0


def schema(name: str = "a") -> dict[str, str]:
    return {"schema": record("Order", name)}


def test_rules_say_who_may_do_what(registry: RegistryProcess) -> None:
    ask = registry.ask
    assert ask("GET", "/subjects").status == 401
    path = "/subjects/orders-value/versions"
    made = ask("POST", path, schema(), login="writer:w")
    assert made.status == 200, made.body
    denied = ask("POST", path, schema("b"), login="reader:r")
    assert code_of(denied) == (403, 40301)
    assert denied.json()["message"] == "User:reader is denied operation Write on Subject: orders-value"
    schema_id = made.json()["id"]
    assert ask("GET", f"/schemas/ids/{schema_id}", login="reader:r").status == 200
    assert ask("GET", f"{path}/latest", login="reader:r").status == 200
    ask("POST", "/subjects/secret/versions", {"schema": '"long"'}, login="root:x")
    assert code_of(ask("GET", "/subjects/secret/versions/1", login="reader:r")) == (403, 40301)
    assert code_of(ask("GET", f"/schemas/ids/{schema_id + 1}", login="reader:r")) == (403, 40301)
    refers = {**schema("r"), "references": [{"name": "X", "subject": "secret", "version": 1}]}
    assert code_of(ask("POST", path, refers, login="writer:w")) == (403, 40301)
    assert ask("GET", "/subjects", login="reader:r").json() == ["orders-value"]
    assert ask("GET", "/subjects", login="cleaner:c").json() == ["orders-value", "secret"]
    assert [each["subject"] for each in ask("GET", "/schemas", login="reader:r").json()] == ["orders-value"]
    assert ask("PUT", "/config/orders-value", {"compatibility": "NONE"}, login="writer:w").status == 200
    assert code_of(ask("PUT", "/config", {"compatibility": "NONE"}, login="writer:w")) == (403, 40301)
    assert ask("GET", "/config", login="cleaner:c").status == 200
    assert code_of(ask("GET", "/mode", login="reader:r")) == (403, 40301)
    assert code_of(ask("DELETE", "/subjects/orders-value", login="writer:w")) == (403, 40301)
    assert ask("DELETE", "/subjects/orders-value", login="cleaner:c").json() == [1]


def test_rules_that_change_count_soon_and_broken_ones_do_not(registry: RegistryProcess) -> None:
    rules = registry.process.log_path.with_name("rules")
    path = "/subjects/later/versions"
    assert registry.ask("POST", path, schema("l"), login="reader:r").status == 403
    rules.write_text(RULES + "allow User:reader Write literal later\n")
    wait_until(
        lambda: registry.ask("POST", path, schema("l"), login="reader:r").status == 200, "the new rules"
    )
    rules.write_text("nonsense\n")
    os.utime(rules, (1, 1))
    wait_until(lambda: "stay as they were" in _asked(registry, path).log, "the complaint about the new rules")
    assert registry.ask("POST", path, schema("l"), login="reader:r").status == 200


def _asked(registry: RegistryProcess, path: str) -> RegistryProcess:
    registry.ask("POST", path, schema("l"), login="reader:r")
    return registry


def test_a_follower_passes_the_login_on(registry: RegistryProcess, broker: PenstockBroker) -> None:
    directory = registry.process.log_path.parent
    (directory / "rules").write_text(RULES)
    text = (directory / "registry.properties").read_text()
    properties = dict(line.partition("=")[::2] for line in text.splitlines())
    follower = RegistryProcess(broker.bootstrap, directory, properties, name="follower")
    try:
        wait_until(lambda: "The leader is " in follower.log, "the follower to know its leader")
        made = follower.ask("POST", "/subjects/orders-f/versions", schema("f"), login="writer:w")
        assert made.status == 200, made.body
        assert (
            follower.ask("POST", "/subjects/orders-f/versions", schema("g"), login="reader:r").status == 403
        )
    finally:
        assert follower.close() == 0


def test_rules_that_cannot_be_read_stop_the_start(broker: PenstockBroker, tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("allow User:a Fly any\n")
    with pytest.raises(Exception, match=r"penstock\.subject\.acls\.file.*line 1: 'Fly' is not one of"):
        RegistryProcess(broker.bootstrap, tmp_path, {"penstock.subject.acls.file": str(tmp_path / "rules")})
