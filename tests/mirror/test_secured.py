"""From a cluster of two brokers behind TLS and a login, and back."""

from pathlib import Path

from tests.clients.admin import create_topic
from tests.conftest import StartBroker
from tests.mirror.mirrors import MirrorProcess, count, numbers, properties, read, until, write
from tests.secured_penstock import secured_penstock


def test_a_secured_cluster_is_copied_and_copied_to(start_broker: StartBroker, tmp_path: Path) -> None:
    plain = start_broker(name="plain")
    with secured_penstock(tmp_path) as secured:
        for cluster in (secured.kafka.bootstrap, plain.bootstrap):
            create_topic(cluster, "orders", partitions=4)
            write(cluster, "orders", range(1000), partitions=4)
        login = {f"A.{name}": value for name, value in secured.options("SASL_SSL").items()}
        given = properties(
            secured.kafka.address("SASL_SSL"), plain.bootstrap, both_ways=True,
            exactly_once_source_support="enabled", topics="orders", tasks_max="2",
        )  # fmt: skip
        escaped = {name: value.replace("\\", "\\\\") for name, value in login.items()}
        with MirrorProcess(tmp_path, given | escaped) as mirror:
            until(lambda: count(plain.bootstrap, "A.orders") == 1000, "the secured cluster's records")
            until(lambda: count(secured.kafka.bootstrap, "B.orders") == 1000, "the other's records")
            assert mirror.stop() == 0
        assert numbers(read(plain.bootstrap, "A.orders")) == list(range(1000))
        assert "scram-secret" not in mirror.log_path.read_text()
