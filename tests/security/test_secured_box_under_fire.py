"""A secured cluster of three, as `penstock up --secure` makes it, loses a leader and is restarted while a producer writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.client.property_files import read_properties
from tests.cli.boxes import TestBox
from tests.clients.driver import WAIT_S, wait_until
from tests.cluster.clients import SteadyProducer, values_in

TOPIC, PARTITIONS = "orders", 3


@pytest.mark.timeout(180)
def test_a_killed_leader_and_a_rolling_restart_lose_nothing(tmp_path: Path) -> None:
    box = TestBox(tmp_path / "box")
    try:
        started = box.up_anew("--brokers", "3", "--secure")
        assert started.code == 0, started.err
        login = read_properties(str(box.directory / "client.conf"))
        admin = AdminClient({**login, "log_level": 0})
        topic = NewTopic(TOPIC, PARTITIONS, 3, config={"min.insync.replicas": "2"})
        admin.create_topics([topic])[TOPIC].result(WAIT_S)
        with SteadyProducer(
            login["bootstrap.servers"], TOPIC, partitions=PARTITIONS, login=login
        ) as producer:
            producer.wait_for_more()
            leader = admin.list_topics(TOPIC, timeout=WAIT_S).topics[TOPIC].partitions[0].leader
            box.kill(f"broker-{leader}")
            wait_until(lambda: leader in box.status()["missing_brokers"], "the loss to be noticed")
            producer.wait_for_more()
            assert box.up("--only", f"broker-{leader}").code == 0
            wait_until(lambda: bool(box.status()["healthy"]), "all replicas in sync")
            restarted = box.run("cluster", "restart", "--rolling")
            assert restarted.code == 0, restarted.err
            producer.wait_for_more()
            sent = producer.finish()
        found = values_in(login["bootstrap.servers"], TOPIC, PARTITIONS, login)
        assert sorted(found) == sorted(sent), "each of them once"
        assert box.run("down").code == 0
        for path in box.directory.glob("broker-*.log"):
            assert "Traceback" not in path.read_text(), path.read_text()
            assert login["sasl.password"] not in path.read_text()
    finally:
        box.close()
