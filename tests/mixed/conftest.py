"""Apache Kafka 3.9, the last with ZooKeeper, and 4.3 for its clients: collected by scripts/java-setup when they are not there."""

import subprocess
from pathlib import Path

import pytest

from simulation.apache.java import DEFAULT_VERSION
from simulation.apache.kafka_cluster import ZOOKEEPER_MODE_VERSION

JAVA_SETUP = Path(__file__).resolve().parents[2] / "scripts" / "java-setup"


@pytest.fixture(scope="session", autouse=True)
def apache_kafka() -> None:
    """Does nothing where the jars are."""
    for version in (ZOOKEEPER_MODE_VERSION, DEFAULT_VERSION):
        done = subprocess.run([JAVA_SETUP, version], capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
