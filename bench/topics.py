"""Topics for a workload, made before it and removed after it."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.servers import Server

ADMIN_TIMEOUT_S = 30.0


@contextmanager
def temporary_topic(server: Server, topic: str, *, partition_count: int) -> Iterator[str]:
    """The number of partitions belongs into the name, where the null broker reads it ("…-6p")."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 4})
    created = admin.create_topics([NewTopic(topic, partition_count, 1)], operation_timeout=ADMIN_TIMEOUT_S)
    created[topic].result(ADMIN_TIMEOUT_S)
    try:
        yield topic
    finally:
        if server.process.is_running:
            admin.delete_topics([topic], operation_timeout=ADMIN_TIMEOUT_S)[topic].result(ADMIN_TIMEOUT_S)
