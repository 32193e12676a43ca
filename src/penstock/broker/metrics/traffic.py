"""Records and bytes that came and went, by topic, for the metrics page.

What came in is not counted with each append: it is the difference between where a log ends now and where it ended when this
broker began to lead it, which `Partition` notes. What goes out, and requests, are counted by the handlers. The counts of topics
that are gone stay in those of the broker, which never go back.
"""

from typing import Final

FIELDS: Final = (
    "messages_in",
    "bytes_in",
    "bytes_out",
    "bytes_rejected",
    "produce_requests",
    "fetch_requests",
    "failed_produce_requests",
    "failed_fetch_requests",
    "replication_bytes_in",
    "replication_bytes_out",
)


class TopicTraffic:
    """Of one topic, or of topics together. `messages_in` and `bytes_in` are of leaderships that are over."""

    __slots__ = FIELDS

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.produce_requests = 0
        self.fetch_requests = 0
        self.failed_produce_requests = 0
        self.failed_fetch_requests = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0

    def add(self, other: "TopicTraffic") -> None:
        for name in FIELDS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def copy(self) -> "TopicTraffic":
        same = TopicTraffic()
        same.add(self)
        return same
