"""What a KRaft node of Apache Kafka wrote down about its topics, read from the `__cluster_metadata` log it leaves behind.

A record's value: frame version, record type, version (unsigned varints), then the fields. Three types matter here:

    2 Topic        name: string, topic id
    4 Config       resource type: int8 (2 = topic), resource name: string, name: string, value: string or null
    9 RemoveTopic  topic id
   15 ProducerIds  broker: int32, broker epoch: int64, next producer id: int64

Strings are compact: their length + 1 as a varint, 0 = null. A snapshot (`<offset>-<epoch>.checkpoint`) holds the same
records and replaces everything below its offset.
"""

from penstock.records.batch import InvalidRecord
from penstock.records.walk import iterate_batches_records
from penstock.runtime.files import Disk
from penstock.storage import names
from penstock.wire.errors import Malformed
from penstock.wire.primitives import read_uvarint

DIRECTORY = "__cluster_metadata-0"
CHECKPOINT_SUFFIX = ".checkpoint"
_TOPIC, _CONFIG, _REMOVE_TOPIC, _PRODUCER_IDS = 2, 4, 9, 15
_TOPIC_RESOURCE = 2


class KraftMetadata:
    """The topics' own configs by topic name, and the first producer id that was never handed out."""

    __slots__ = ("_names", "configs", "next_producer_id")

    def __init__(self) -> None:
        self.configs: dict[str, dict[str, str]] = {}
        self.next_producer_id = 0
        self._names: dict[bytes, str] = {}

    def knows(self, topic: str) -> bool:
        """Whether what it does not say of the topic's configs is the default."""
        return topic in self._names.values()

    def replay(self, value: bytes) -> None:
        reader = _Reader(value)
        reader.varint()
        kind = reader.varint()
        reader.varint()
        if kind == _TOPIC:
            name = reader.string()
            self._names[reader.take(16)] = name or ""
        elif kind == _CONFIG:
            is_topic = reader.take(1)[0] == _TOPIC_RESOURCE
            topic, name, text = reader.string(), reader.string(), reader.string()
            if is_topic:
                configs = self.configs.setdefault(topic or "", {})
                if text is None:
                    configs.pop(name or "", None)
                else:
                    configs[name or ""] = text
        elif kind == _REMOVE_TOPIC:
            self.configs.pop(self._names.pop(reader.take(16), ""), None)
        elif kind == _PRODUCER_IDS:
            reader.take(12)
            self.next_producer_id = int.from_bytes(reader.take(8), "big")


def read_kraft_metadata(disk: Disk, log_directory: str) -> KraftMetadata | None:
    """None when the directory has no such log. What is damaged ends the reading: all before it counts."""
    directory = f"{log_directory}/{DIRECTORY}"
    if not disk.exists(directory):
        return None
    metadata = KraftMetadata()
    files = sorted(name for name, _ in disk.list_files(directory))
    checkpoints = [name for name in files if name.endswith(CHECKPOINT_SUFFIX) and name[:20].isdigit()]
    start_offset = int(checkpoints[-1][:20]) if checkpoints else 0
    logs = [name for name in files if names.offset_of(name, names.LOG_SUFFIX) is not None]
    try:
        for name in checkpoints[-1:]:
            _replay(metadata, disk.read(f"{directory}/{name}"), 0)
        for name in logs:
            _replay(metadata, disk.read(f"{directory}/{name}"), start_offset)
    except (InvalidRecord, IndexError, Malformed, UnicodeDecodeError):
        pass
    return metadata


def _replay(metadata: KraftMetadata, data: bytes, start_offset: int) -> None:
    for header, records in iterate_batches_records(data):
        if header.base_offset >= start_offset and not header.is_control:
            for record in records:
                metadata.replay(record.value or b"")


class _Reader:
    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise IndexError("a metadata record ends too early")
        data = self._data[self._position : end]
        self._position = end
        return data

    def varint(self) -> int:
        value, self._position = read_uvarint(self._data, self._position)
        return value

    def string(self) -> str | None:
        length = self.varint() - 1
        return None if length < 0 else self.take(length).decode()
