"""A stray: a log that does not belong where it is, by the cluster's metadata. As a broker or a directory describes it."""

from typing import Any, NamedTuple

from penstock.model.ids import id_text


class FoundStray(NamedTuple):
    broker: int | None
    """None: found in a directory, without a broker."""
    log_directory: str
    directory: str
    topic: str
    partition: int
    topic_id: bytes
    size_bytes: int
    start_offset: int
    end_offset: int
    leader_epoch: int
    set_aside_ms: int

    @property
    def reach(self) -> tuple[int, int]:
        """The one with the greatest has all that was ever committed."""
        return self.leader_epoch, self.end_offset

    def is_of(self, topic: str) -> bool:
        """By its name, or its id as Kafka writes it or as it is in the name of the directory."""
        return topic in (self.topic, id_text(self.topic_id), self.topic_id.hex())

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "topic_id": id_text(self.topic_id)}
