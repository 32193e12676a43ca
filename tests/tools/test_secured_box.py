"""What `penstock up --secure` writes for Java's clients, used by Apache Kafka's own tools."""

from pathlib import Path

from simulation.apache.resident_tools import resident_tool
from tests.cli.boxes import TestBox
from tests.cli.conftest import run_command

TOOLS = "org.apache.kafka.tools"


def test_kafkas_tools_come_in_with_the_file(tmp_path: Path) -> None:
    box = TestBox(tmp_path / "box")
    try:
        started = box.up_anew("--secure")
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
    finally:
        box.close()
