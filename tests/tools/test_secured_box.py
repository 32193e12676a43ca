"""What `penstock up --secure` writes for Java's clients, used by Apache Kafka's own tools."""

import json
from collections.abc import Callable
from pathlib import Path

from simulation.apache.resident_tools import resident_tool
from tests.cli.boxes import TestBox
from tests.cli.conftest import run_command
from tests.clients.driver import wait_until

TOOLS = "org.apache.kafka.tools"
CONSUMER_GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
REASSIGN = f"{TOOLS}.reassign.ReassignPartitionsCommand"


def described(tool: Callable[..., str]) -> str:
    return tool(f"{TOOLS}.TopicCommand", "--describe", "--topic", "moved")


def test_kafkas_tools_come_in_with_the_file(tmp_path: Path) -> None:
    box = TestBox(tmp_path / "box")
    try:
        started = box.up_anew("--secure", "--brokers", "2")
        assert started.code == 0, started.err
        at = ("--bootstrap-server", box.bootstrap)
        config = str(box.directory / "client.properties")

        def tool(name: str, *words: str) -> str:
            return resident_tool(name, *at, "--command-config", config, *words).stdout

        tool(f"{TOOLS}.TopicCommand", "--create", "--topic", "orders")
        assert "orders" in tool(f"{TOOLS}.TopicCommand", "--list")
        user = ("--alter", "--entity-type", "users", "--entity-name", "ana")
        tool("kafka.admin.ConfigCommand", *user, "--add-config", "SCRAM-SHA-512=[password=anas]")
        listed = run_command("penstock", "users", "list", "--command-config", config)
        assert "ana" in listed.out
        tool(f"{TOOLS}.TopicCommand", "--create", "--topic", "moved", "--replica-assignment", "1:2")
        one = ("--group", "billing", "--topic", "orders:0")
        tool(CONSUMER_GROUPS, *one, "--reset-offsets", "--to-offset", "0", "--execute")
        assert "billing" in tool(CONSUMER_GROUPS, "--list")
        assert "orders" in tool(CONSUMER_GROUPS, "--describe", "--group", "billing")
        plan = tmp_path / "plan.json"
        replicas = [{"topic": "moved", "partition": 0, "replicas": [2, 1]}]
        plan.write_text(json.dumps({"version": 1, "partitions": replicas}))
        reassignment = ("--reassignment-json-file", str(plan))
        tool(REASSIGN, *reassignment, "--execute")
        wait_until(
            lambda: "is completed" in tool(REASSIGN, *reassignment, "--verify", "--preserve-throttles"),
            "the replicas in their new order",
        )
        preferred = ("--election-type", "preferred", "--topic", "moved", "--partition", "0")
        assert "moved" in tool(f"{TOOLS}.LeaderElectionCommand", *preferred)
        wait_until(lambda: "Leader: 2" in described(tool), "the preferred replica leading")
    finally:
        box.close()
