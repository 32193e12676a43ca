"""What tests do to topics through confluent-kafka's admin client, and a look at the files of a partition."""

import struct
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from tests.clients.driver import WAIT_S, Refused, wait_until

CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")


def admin_client(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def create_topic(
    bootstrap: str, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> None:
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(configs or {}))
    admin = admin_client(bootstrap)  # a client that nobody holds is closed with its requests on their way
    try:
        admin.create_topics([topic])[name].result(WAIT_S)
    except KafkaException as error:
        raise Refused(error.args[0].code()) from None


def delete_topic(bootstrap: str, name: str) -> None:
    admin = admin_client(bootstrap)
    admin.delete_topics([name])[name].result(WAIT_S)
    wait_until(lambda: name not in admin.list_topics(timeout=WAIT_S).topics, f"{name} is gone")


def delete_records(bootstrap: str, topic: str, partition: int, before: int) -> None:
    where = TopicPartition(topic, partition, before)
    admin = admin_client(bootstrap)
    admin.delete_records([where])[where].result(WAIT_S)


def topic_configs(bootstrap: str, topic: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = admin_client(bootstrap)
    entries = admin.describe_configs([resource])[resource].result(WAIT_S)
    return {name: entry.value for name, entry in entries.items()}


def stored_codecs(data_dir: Path, topic: str, partition: int = 0) -> set[str]:
    """The codecs of the batches in a partition's files, by the low three bits of each batch's attributes."""
    codecs = set()
    for path in sorted((data_dir / f"{topic}-{partition}").glob("*.log")):
        data = path.read_bytes()
        position = 0
        while position < len(data):
            (length,) = struct.unpack_from(">i", data, position + 8)
            (attributes,) = struct.unpack_from(">h", data, position + 21)
            codecs.add(CODEC_NAMES[attributes & 7])
            position += 12 + length
    return codecs
