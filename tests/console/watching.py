"""A console that looks at its clusters every second, for tests that wait for what it sees."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer

from penstock.admin import Cluster
from tests.clients.driver import WAIT_S, wait_until
from tests.console.conftest import StartConsole
from tests.console.console_process import ConsoleProcess


def watching(start_console: StartConsole, folder: Path, clusters: Mapping[str, str]) -> ConsoleProcess:
    """`clusters` are names and bootstrap addresses."""
    config = folder / "console.yaml"
    # YAML takes JSON.
    config.write_text(
        json.dumps(
            {
                "clusters": [{"name": name, "bootstrap": where} for name, where in clusters.items()],
                "snapshot_seconds": 1,
            }
        )
    )
    return start_console("--config", str(config))


def write(bootstrap: str, topic: str, values: Mapping[int, list[bytes | None]], **settings: Any) -> None:
    """To partitions, with keys k0, k1 …"""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, **settings})
    for partition, records in values.items():
        for number, value in enumerate(records):
            producer.produce(topic, key=f"k{number}", value=value, partition=partition)
    assert producer.flush(WAIT_S) == 0


def member_of(bootstrap: str, group: str, topic: str, **settings: Any) -> Consumer:
    """A consumer that has joined; the caller closes it."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "log_level": 0,
            **settings,
        }
    )
    consumer.subscribe([topic])
    wait_until(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()), f"{group} has joined")
    return consumer


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    """The same offset in each partition."""
    with Cluster(bootstrap) as cluster:
        cluster.groups.commit(group, dict.fromkeys(cluster.topics.partitions(topic), offset))
