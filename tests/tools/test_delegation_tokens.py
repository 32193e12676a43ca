"""Kafka's tool for delegation tokens beside ours, and a Java client that logs in with a token."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.admin.cluster import Cluster
from penstock.stack.certificates import Authority
from simulation.apache.resident_tools import resident_tool
from tests.security.secured_broker import MODULES, SecuredBroker
from tests.tools.conftest import TOOL_TIMEOUT_S, TOOLS

OURS = Path(__file__).resolve().parents[2] / "bin" / "kafka-delegation-tokens.sh"
ANA = (
    "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
    f'sasl.jaas.config={MODULES}.plain.PlainLoginModule required username="bob" password="bobs";\n'
)
# What is new each time: a token's id, its secret, times.
CHANGING = re.compile(r"[A-Za-z0-9+/_-]{86}==|\b[A-Za-z0-9_-]{22}\b|\d{4}-\d\d-\d\dT\d\d:\d\d")


class Said(NamedTuple):
    out: str
    first_complaint: str
    code: int


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    directory = tmp_path_factory.mktemp("tokens")
    authority = Authority(directory / "certificates")
    with SecuredBroker(directory, authority, **{"delegation.token.secret.key": "k"}) as running:
        (directory / "client.properties").write_text(ANA)
        yield running


@pytest.fixture(scope="module")
def hmac(broker: SecuredBroker) -> str:
    with Cluster(broker.bootstrap("LOGIN"), properties_of(ANA)) as cluster:
        return cluster.tokens.create(renewers=["User:r1", "User:r2"]).hmac


def properties_of(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def both(broker: SecuredBroker, *words: str) -> tuple[Said, Said]:
    given = ("--bootstrap-server", broker.bootstrap("LOGIN"))
    given = (*given, "--command-config", str(broker.directory / "client.properties"), *words)
    java = resident_tool(f"{TOOLS}.DelegationTokenCommand", *given, timeout_s=TOOL_TIMEOUT_S, check=False)
    ours = subprocess.run([OURS, *given], capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False)
    return said(java), said(ours)


def said(done: "subprocess.CompletedProcess[str]") -> Said:
    """Kafka's tool puts a stack trace behind its complaint."""
    return Said(CHANGING.sub("…", done.stdout), "\n".join(done.stderr.splitlines()[:1]), done.returncode)


@pytest.mark.parametrize(
    "words",
    [
        ("--create", "--max-life-time-period", "-1"),
        (
            "--create",
            "--max-life-time-period",
            "60000",
            "--renewer-principal",
            "User:a",
            "--renewer-principal",
            "User:b",
        ),
        ("--create", "--max-life-time-period", "-1", "--owner-principal", "User:carl"),
        ("--describe", "--owner-principal", "User:r1"),
        ("--describe", "--owner-principal", "User:nobody"),
        ("--renew", "--renew-time-period", "-1", "--hmac", "HMAC"),
        ("--expire", "--expiry-time-period", "86400000", "--hmac", "HMAC"),
        ("--renew", "--renew-time-period", "1000", "--hmac", "d3Jvbmc="),
        ("--expire", "--expiry-time-period", "-1", "--hmac", "d3Jvbmc="),
        ("--create", "--max-life-time-period", "-1", "--renewer-principal", "Group:g"),
    ],
    ids=" ".join,
)
def test_tokens_are_told_in_kafkas_words(broker: SecuredBroker, hmac: str, words: tuple[str, ...]) -> None:
    kafkas, ours = both(broker, *(hmac if word == "HMAC" else word for word in words))
    assert ours == kafkas


@pytest.mark.parametrize(
    "words",
    [
        ("--create",),
        ("--create", "--describe"),
        ("--describe", "--hmac", "x"),
        ("--renew", "--hmac", "x"),
        ("--expire", "--expiry-time-period", "1"),
        ("--expire", "--expiry-time-period", "1", "--hmac", "x", "--owner-principal", "User:a"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_is_refused_in_kafkas_words(broker: SecuredBroker, words: tuple[str, ...]) -> None:
    kafkas, ours = both(broker, *words)
    assert ours == kafkas
    assert ours.code == 1


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_java_client_logs_in_with_a_token(broker: SecuredBroker, mechanism: str) -> None:
    with Cluster(broker.bootstrap("LOGIN"), properties_of(ANA)) as cluster:
        token = cluster.tokens.create()
    file = broker.directory / f"{mechanism}.properties"
    file.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f"sasl.jaas.config={MODULES}.scram.ScramLoginModule required "
        f'username="{token.token_id}" password="{token.hmac}" tokenauth="true";\n'
    )
    words = ("--bootstrap-server", broker.bootstrap("LOGIN"), "--command-config", str(file))
    topic = f"by-{mechanism}"
    resident_tool(f"{TOOLS}.TopicCommand", *words, "--create", "--topic", topic, timeout_s=TOOL_TIMEOUT_S)
    listed = resident_tool(f"{TOOLS}.TopicCommand", *words, "--list", timeout_s=TOOL_TIMEOUT_S)
    assert topic in listed.stdout.split()
    refused = resident_tool(
        f"{TOOLS}.DelegationTokenCommand", *words, "--describe", timeout_s=TOOL_TIMEOUT_S, check=False
    )
    assert "UnsupportedByAuthenticationException" in refused.stderr
