"""What a mirror tells Prometheus."""

from prometheus_client import CollectorRegistry

from penstock.mirror.flows import read_flows
from penstock.mirror.numbers import MirrorNumbers
from penstock.mirror.progress import Progress
from penstock.model.ids import TopicPartition

PROPERTIES = {
    "clusters": "metered, other",
    "metered.bootstrap.servers": "localhost:1",
    "other.bootstrap.servers": "localhost:2",
    "metered->other.enabled": "true",
}


def test_a_flow_tells_what_it_has_copied_and_how_far_it_is_behind() -> None:
    registry = CollectorRegistry()
    registry.register(MirrorNumbers(read_flows(PROPERTIES)))
    labels = {"source": "metered", "target": "other"}
    prefix = "kafka_connect_mirror_mirrorsourceconnector"
    assert registry.get_sample_value("penstock_mirror_records_total", labels) == 0
    progress = Progress.of("metered", "other")
    progress.wrote(10, 1000)
    progress.reached(TopicPartition("orders", 0), 10, 25)
    assert registry.get_sample_value("penstock_mirror_records_total", labels) == 10
    assert registry.get_sample_value("penstock_mirror_lag", labels) == 15
    assert registry.get_sample_value("penstock_mirror_topics", labels) == 1
    progress.wrote(10, 1000)
    assert (registry.get_sample_value(f"{prefix}_record_rate", labels) or 0) > 0
    assert registry.get_sample_value(f"{prefix}_byte_rate", labels) == 0  # since the look just before
