"""What a broker with logins says before it serves anybody: mistakes in login lines, and listeners that ask nobody."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.access.doors import Doors
from penstock.broker.process import warn_of_open_doors
from penstock.config.loading import load
from tests.security.sasl_talk import refusal_at_start

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PASSWORD = "hunter2"


@pytest.mark.parametrize(
    ("option", "line", "reason"),
    [
        ("listener.name.sasl_plaintext.plain.sasl.jaas.config", f'{PLAIN} required user_ana="{PASSWORD}', "quote"),
        ("listener.name.sasl_plaintext.plain.sasl.jaas.config", f'{PLAIN} user_ana="{PASSWORD}";', "must stand required"),
        ("listener.name.sasl_plaintext.plain.sasl.jaas.config", f'{PLAIN} required user_ana "{PASSWORD}";', "'=' is missing"),
        ("plain.sasl.jaas.config", f'{PLAIN} required\\n user_ana="{PASSWORD}"', "line 2: ';' is missing"),
        # SCRAM needs no line on a broker that is alone; one that is there must be right
        ("listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config", f"{SCRAM} required password={PASSWORD}", "';'"),
        ("sasl.jaas.config", f'{SCRAM} required username="broker" password="{PASSWORD};', "quote"),
    ],
)  # fmt: skip
def test_a_login_line_that_cannot_be_read_is_named(
    tmp_path: Path, option: str, line: str, reason: str
) -> None:
    good = {"listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN} required;"}
    mechanisms = "PLAIN,SCRAM-SHA-512" if "PlainLogin" in line else "SCRAM-SHA-512"
    given = {} if "PlainLogin" in line else good
    told = refusal_at_start(tmp_path, {"sasl.enabled.mechanisms": mechanisms, **given, option: line})
    assert "sasl.jaas.config: line " in told
    assert reason in told
    assert PASSWORD not in told


def lines(caplog: pytest.LogCaptureFixture, host: str, options: Mapping[str, str]) -> list[str]:
    """What a broker with one listener X says."""
    config = load({"listeners": f"X://{host}:9092", **options})[0]
    node: Any = SimpleNamespace(config=config, loop=None, pools=None, clock=None)
    node.doors, node.authorizer = Doors(node), SimpleNamespace(is_on=True)
    listener: Any = SimpleNamespace(name="X", host=host, port=9092)
    with caplog.at_level(logging.INFO, "penstock.broker"):
        warn_of_open_doors([listener], node)
    return caplog.messages


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7"])
@pytest.mark.parametrize(
    "options",
    [
        {"listener.security.protocol.map": "X:PLAINTEXT"},
        {"listener.security.protocol.map": "X:SSL"},
        {"listener.security.protocol.map": "X:SSL", "ssl.client.auth": "requested"},
    ],
)
def test_a_listener_beyond_loopback_that_asks_nobody_is_told_of(
    caplog: pytest.LogCaptureFixture, host: str, options: dict[str, str]
) -> None:
    (told,) = lines(caplog, host, options)
    assert "everybody who reaches this machine can read and write: X (" in told
    assert "docs/security.md" in told


@pytest.mark.parametrize(
    ("host", "options"),
    [
        ("127.0.0.1", {"listener.security.protocol.map": "X:PLAINTEXT"}),
        ("::1", {"listener.security.protocol.map": "X:PLAINTEXT"}),
        ("0.0.0.0", {"listener.security.protocol.map": "X:SASL_PLAINTEXT"}),
        ("0.0.0.0", {"listener.security.protocol.map": "X:SASL_SSL"}),
        (
            "0.0.0.0",
            {"listener.security.protocol.map": "X:SSL", "listener.name.x.ssl.client.auth": "required"},
        ),
    ],
)
def test_others_are_not(caplog: pytest.LogCaptureFixture, host: str, options: dict[str, str]) -> None:
    assert lines(caplog, host, options) == []
