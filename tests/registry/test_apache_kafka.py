"""The registry serves users of Apache Kafka, too."""

from pathlib import Path

from simulation.apache.apache_kafka import ApacheKafka
from tests.registry.registries import RegistryProcess, record


def test_a_registry_on_apache_kafka(tmp_path: Path) -> None:
    with ApacheKafka(tmp_path / "kafka", quick=True) as kafka:
        shared = {"kafkastore.topic": "_schemas", "schema.registry.group.id": "schema-registry"}
        first = RegistryProcess(kafka.bootstrap, tmp_path, shared, name="first")
        second = RegistryProcess(kafka.bootstrap, tmp_path, shared, name="second")
        try:
            one = first.register("s", record("S", "a"))
            two = second.register("s", record("S", "a", "b?"))
            assert (one, two) == (1, 2)
            assert first.get("/subjects/s/versions").json() == [1, 2]
            assert first.close() == 0
            assert second.register("s", record("S", "a", "b?", "c?")) == 3
            assert second.get("/v1/metadata/id").json()["scope"]["clusters"]["kafka-cluster"]
        finally:
            first.close()
            assert second.close() == 0
