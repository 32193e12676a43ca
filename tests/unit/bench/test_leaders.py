import time
from pathlib import Path

from bench.leaders import Metadata, ask_metadata, connect, steady_producer
from penstock.testing.clusters import create_topic
from penstock.testing.penstock_broker import PenstockBroker


def test_leaders_are_asked_for_and_followed_with_bare_sockets(tmp_path: Path) -> None:
    with PenstockBroker(tmp_path) as broker:
        create_topic(broker.bootstrap, "led", partitions=2, replication_factor=1)
        with connect(broker.port) as sock:
            found: Metadata = ask_metadata(sock, None)
            (broker_id,) = set(found.leaders.values())
            assert found == Metadata(broker_id, {("led", 0): broker_id, ("led", 1): broker_id})
            assert ask_metadata(sock, "led") == found
            assert ask_metadata(sock, "other").leaders == {}
        with steady_producer({broker_id: broker.port}, "led") as producer:
            producer.wait_for_acknowledgement(time.monotonic(), timeout_s=60)
            broker.kill()
            killed_at = time.monotonic()
            with PenstockBroker(tmp_path, port=broker.port) as again:
                producer.wait_for_acknowledgement(time.monotonic(), timeout_s=60)
                gap_s, ended_at = producer.longest_gap(killed_at)
                assert again.process.started_at < ended_at
                assert gap_s > ended_at - again.process.started_at
