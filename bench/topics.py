"""Topics for a workload, made before it and removed after it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.servers import Server

ADMIN_TIMEOUT_S = 30.0


def admin_client(server: Server) -> AdminClient:
    return AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 4})


def create_topic(
    server: Server, topic: str, *, partition_count: int, config: Mapping[str, str] | None = None
) -> None:
    admin = admin_client(server)  # which has to live until the result is there
    new = NewTopic(topic, partition_count, 1, config=dict(config or {}))
    created = admin.create_topics([new], operation_timeout=ADMIN_TIMEOUT_S)
    created[topic].result(ADMIN_TIMEOUT_S)


@contextmanager
def temporary_topic(
    server: Server, topic: str, *, partition_count: int, config: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The number of partitions belongs into the name, where the null broker reads it ("…-6p")."""
    create_topic(server, topic, partition_count=partition_count, config=config)
    try:
        yield topic
    finally:
        if server.process.is_running:
            admin = admin_client(server)
            admin.delete_topics([topic], operation_timeout=ADMIN_TIMEOUT_S)[topic].result(ADMIN_TIMEOUT_S)
