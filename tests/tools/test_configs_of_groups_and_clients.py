"""Configs of groups and of client metrics: what Apache's tools say and what ours say is word for word the same."""

import json
import re
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from simulation.apache.java import java_command
from simulation.apache.resident_tools import resident_tool
from tests.cli.conftest import run_command
from tests.cli.group_members import commit, produce
from tests.clients.driver import wait_until
from tests.conftest import MakeTopic, StartBroker
from tests.tools.conftest import TOOL_TIMEOUT_S, TOOLS

CONFIGS = ("kafka.admin.ConfigCommand", "kafka-configs")
CLIENT_METRICS = (f"{TOOLS}.ClientMetricsCommand", "kafka-client-metrics")
MEMBER = Path(__file__).parents[1] / "clients" / "group_member.py"

Both = Callable[..., list[str]]


@pytest.fixture
def both(broker: PenstockBroker) -> Both:
    """What both tools say, when it is the same."""

    def run(tools: tuple[str, str], line: str) -> list[str]:
        words = ("--bootstrap-server", broker.bootstrap, *shlex.split(line))
        kafkas = resident_tool(tools[0], *words, check=False, timeout_s=TOOL_TIMEOUT_S)
        ours = run_command(tools[1], *words)
        assert (ours.out, ours.code) == (kafkas.stdout, kafkas.returncode)
        return ours.out.splitlines()

    return run


def test_a_groups_configs_are_set_described_and_taken_back(
    broker: PenstockBroker, both: Both, make_topic: MakeTopic
) -> None:
    group = make_topic()  # a name that nobody else uses
    entity = f"--entity-type groups --entity-name {group}"
    assert both(CONFIGS, f"{entity} --describe") == [
        f"The group '{group}' doesn't exist and doesn't have dynamic config."
    ]
    assert len(both(CONFIGS, f"{entity} --describe --all")) == 18
    added = "consumer.session.timeout.ms=50000,share.auto.offset.reset=earliest"
    assert both(CONFIGS, f"{entity} --alter --add-config {added}") == [
        f"Completed updating config for group {group}."
    ]
    described = [
        f"Dynamic configs for group {group} are:",
        "  consumer.session.timeout.ms=50000 sensitive=false synonyms={DYNAMIC_GROUP_CONFIG:"
        "consumer.session.timeout.ms=50000, DEFAULT_CONFIG:group.consumer.session.timeout.ms=45000}",
        "  share.auto.offset.reset=earliest sensitive=false synonyms={DYNAMIC_GROUP_CONFIG:"
        "share.auto.offset.reset=earliest, DEFAULT_CONFIG:share.auto.offset.reset=latest}",
    ]
    assert both(CONFIGS, f"--group {group} --describe") == described
    for refused in ("consumer.session.timeout.ms=1000", "nonsense=1"):
        both(CONFIGS, f"{entity} --alter --add-config {refused}")
    names = "consumer.session.timeout.ms,share.auto.offset.reset"
    both(CONFIGS, f"{entity} --alter --delete-config {names}")
    commit(broker.bootstrap, group, group, {0: 0})
    assert both(CONFIGS, f"{entity} --describe") == [f"Dynamic configs for group {group} are:"]


def test_subscriptions_are_added_described_and_deleted(both: Both, topic_name: str) -> None:
    name = f"--name {topic_name}"
    assert both(CLIENT_METRICS, f"--describe {name}") == [
        f"The client metric resource {topic_name} doesn't exist and doesn't have dynamic config."
    ]
    settings = "--interval 1000 --metrics org.apache.kafka.,x --match client_id=a,client_software_name=b.*"
    assert both(CLIENT_METRICS, f"--alter {name} {settings}") == [
        f"Altered client metrics config for {topic_name}."
    ]
    described = [
        f"Client metrics configs for {topic_name} are:",
        "  interval.ms=1000",
        "  match=client_id=a,client_software_name=b.*",
        "  metrics=org.apache.kafka.,x",
    ]
    assert both(CLIENT_METRICS, f"--describe {name}") == described
    assert both(CLIENT_METRICS, "--list") == [topic_name]
    both(CLIENT_METRICS, f"--alter {name} --interval '' --metrics ''")
    assert both(CLIENT_METRICS, "--describe")[1:] == ["  interval.ms=300000", described[2], "  metrics="]
    both(CONFIGS, f"--entity-type client-metrics --entity-name {topic_name} --describe --all")
    for refused in (f"{name} --interval 1", f"{name} --match nonsense=x", "--interval 1000"):
        both(CLIENT_METRICS, f"--alter {refused}")
    assert both(CLIENT_METRICS, f"--delete {name}") == [f"Deleted client metrics config for {topic_name}."]
    assert both(CLIENT_METRICS, "--list") == [""]


def test_a_name_is_generated_as_kafkas_tool_does(broker: PenstockBroker) -> None:
    words = ("--bootstrap-server", broker.bootstrap)
    said = run_command("kafka-client-metrics", *words, "--alter", "--generate-name", "--interval", "5000").out
    match = re.fullmatch(r"Altered client metrics config for ([\w-]{22})\.\n", said)
    assert match
    assert run_command("kafka-client-metrics.sh", *words, "--list").out.split() == [match[1]]
    run_command("kafka-client-metrics", *words, "--delete", f"--name={match[1]}")


def test_a_killed_member_is_put_out_after_the_session_of_its_group(
    start_broker: StartBroker, topic_name: str
) -> None:
    bounds = {
        "group.consumer.min.session.timeout.ms": "100",
        "group.consumer.max.session.timeout.ms": "600000",
        "group.consumer.min.heartbeat.interval.ms": "100",
    }
    # With the session of all groups the test would outlast its deadline.
    broker = start_broker(options={**bounds, "group.consumer.session.timeout.ms": "600000"})
    words = ("--bootstrap-server", broker.bootstrap)
    assert run_command("kafka-topics", *words, "--create", "--topic", topic_name).code == 0
    session = "consumer.session.timeout.ms=1500,consumer.heartbeat.interval.ms=300"
    assert run_command("kafka-configs", *words, "--alter", "--group", "g", "--add-config", session).code == 0
    command = [sys.executable, str(MEMBER), "confluent", broker.bootstrap, "g", topic_name, "consumer"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as member:
        assert member.stdout is not None
        for line in member.stdout:
            if json.loads(line).get("partitions"):
                break
        member.kill()

    def is_empty() -> bool:
        described = run_command("kafka-consumer-groups", *words, "--describe", "--group", "g", "--state").out
        return "Empty" in described

    wait_until(is_empty, "the group without members")


def test_javas_clients_push_their_metrics(start_broker: StartBroker, topic_name: str) -> None:
    broker = start_broker(options={"penstock.metrics.listener": "127.0.0.1:0"})
    words = ("--bootstrap-server", broker.bootstrap)
    assert run_command("kafka-topics", *words, "--create", "--topic", topic_name).code == 0
    produce(broker.bootstrap, topic_name, [50])
    subscription = (
        "--name",
        "all",
        "--interval",
        "500",
        "--metrics",
        "*",
        "--match",
        "client_software_name=apache.*",
    )
    resident_tool(CLIENT_METRICS[0], *words, "--alter", *subscription)
    url = broker.process.wait_for_line(r"^penstock: metrics on (\S+)")[1]

    def consumed() -> list[tuple[str, str]]:
        with urllib.request.urlopen(url, timeout=10) as response:
            page = response.read().decode()
        series = r"^kafka_client_consumer_fetch_manager_records_consumed_total{(.*)} (.*)$"
        return [found for found in re.findall(series, page, re.MULTILINE) if "topic=" not in found[0]]

    console = ("--topic", topic_name, "--from-beginning", "--group", "g")
    told = ("--command-property", "client.id=teller")
    command = java_command(f"{TOOLS}.consumer.ConsoleConsumer", *words, *console, *told, quick=True)
    consumer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        # Until it is a member its series have other labels.
        wait_until(lambda: "50.0" in dict(consumed()).values(), "the metrics of the consumer", timeout_s=60)
        (labels,) = [labels for labels, value in consumed() if value == "50.0"]
    finally:
        consumer.kill()
        consumer.wait()
    assert 'client_id="teller"' in labels
    assert 'group_id="g"' in labels
