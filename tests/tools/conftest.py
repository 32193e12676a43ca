"""Apache Kafka's own Java tools, collected by scripts/java-setup when they are not there yet."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from simulation.apache.class_archive import make_archive
from simulation.apache.java import java_tool
from simulation.apache.resident_tools import resident_tool

TOOLS = "org.apache.kafka.tools"
JAVA_SETUP = Path(__file__).resolve().parents[2] / "scripts" / "java-setup"
TOOL_TIMEOUT_S = 60.0

Output = subprocess.CompletedProcess[str]
Tool = Callable[..., Output]


@pytest.fixture(scope="session", autouse=True)
def jars() -> None:
    done = subprocess.run([JAVA_SETUP], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    make_archive()


@pytest.fixture
def tool(broker: PenstockBroker) -> Tool:
    """Runs a tool against the shared broker: `tool("TopicCommand", "--list")`. A failure fails the test, unless told."""

    def run(name: str, *args: str, stdin: str | None = None, check: bool = True) -> Output:
        main_class = name if name.startswith("kafka.") else f"{TOOLS}.{name}"
        address = ("--bootstrap-server", broker.bootstrap)
        # A verifiable client tells the last of what it did while its JVM ends.
        run_tool = java_tool if name.startswith("Verifiable") else resident_tool
        return run_tool(main_class, *address, *args, stdin=stdin, check=check, timeout_s=TOOL_TIMEOUT_S)

    return run
