"""Members of the newer protocol as clients play them: what they were told, what they own, and how they heartbeat."""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.groups.options import GroupOptions
from penstock.model.errors import ErrorCode
from penstock.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from tests.unit.groups.harness import Harness

AT_ONCE = GroupOptions(consumer_assignment_interval_ms=0)
"""Every change is assigned at once."""


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"\0")


def partitions(parts: Mapping[str, Sequence[int]]) -> list[TopicPartitions]:
    return [TopicPartitions(topic_id=topic_id(name), partitions=list(parts[name])) for name in parts]


class Client:
    """One member. `heartbeat` sends what it must, believes the answer, and gives back at once what it shall not keep."""

    def __init__(
        self,
        harness: Harness,
        member_id: str,
        topics: Sequence[str] | None = ("orders",),
        *,
        instance_id: str | None = None,
        regex: str | None = None,
        group: str = "g",
        assignor: str | None = None,
    ) -> None:
        self.harness = harness
        self.member_id = member_id
        self.topics = topics
        self.instance_id = instance_id
        self.regex = regex
        self.group = group
        self.assignor = assignor
        self.epoch = 0
        self.owned: dict[bytes, set[int]] = {}
        self.is_changed = False

    def send(self, **fields: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, instance_id=self.instance_id, **fields
        )
        ticket = self.harness.ask("consumer_group_heartbeat", request, version=1)
        return self.harness.replies[ticket]

    def heartbeat(self) -> Any:
        is_full = self.epoch == 0 or self.is_changed
        fields: dict[str, Any] = {"member_epoch": self.epoch, "topic_partitions": self._report()}
        if is_full:
            fields |= {
                "rebalance_timeout_ms": 10_000,
                "subscribed_topic_names": self.topics,
                "subscribed_topic_regex": self.regex,
                "server_assignor": self.assignor,
            }
        response = self.send(**fields)
        error = ErrorCode(response.error_code)
        if error in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self.forget()
        elif error is ErrorCode.NONE:
            self.is_changed = False
            self.epoch = response.member_epoch
            if response.assignment is not None:
                parts = response.assignment.topic_partitions
                self.owned = {part.topic_id: set(part.partitions) for part in parts}
        return response

    def subscribe(self, topics: Sequence[str] | None, regex: str | None = None) -> None:
        self.topics, self.regex, self.is_changed = topics, regex, True

    def leave(self, epoch: int = -1) -> Any:
        response = self.send(member_epoch=epoch)
        self.forget()
        return response

    def forget(self) -> None:
        self.epoch = 0
        self.owned = {}

    def _report(self) -> list[TopicPartitions]:
        return [TopicPartitions(topic_id=one, partitions=sorted(self.owned[one])) for one in self.owned]

    @property
    def places(self) -> set[tuple[str, int]]:
        return {
            (one.rstrip(b"\0").decode(), index) for one, indexes in self.owned.items() for index in indexes
        }


def settle(*clients: Client, rounds: int = 12) -> None:
    """Let all heartbeat until nothing changes any more."""
    for _ in range(rounds):
        before = [(client.epoch, client.places) for client in clients]
        for client in clients:
            client.heartbeat()
        if before == [(client.epoch, client.places) for client in clients]:
            return
    raise AssertionError(f"still moving after {rounds} rounds: {[client.places for client in clients]}")
