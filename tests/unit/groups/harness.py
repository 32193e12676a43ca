"""A host without a broker: the log is a list, time moves when told, every reply is checked to be the only one, and
what groups count along to be what a recount gives."""

from collections import Counter
from collections.abc import Iterable
from itertools import count

from penstock.coordination.alarms import AlarmHeap
from penstock.coordination.form import NO_PRODUCER_ID, Outcome, RequestContext, Ticket
from penstock.groups.options import GroupOptions
from penstock.groups.shard import GroupShard


class FakeTopics:
    """Topics by name with their partition counts; the id of a topic is its name in 16 bytes."""

    def __init__(self, **partitions: int) -> None:
        self.partitions = partitions

    def topic_name(self, topic_id: bytes) -> str | None:
        name = topic_id.rstrip(b"\0").decode()
        return name if name in self.partitions else None

    def topic_id(self, name: str) -> bytes | None:
        return name.encode().ljust(16, b"\0") if name in self.partitions else None

    def partition_count(self, name: str) -> int:
        return self.partitions.get(name, 0)

    def names(self) -> Iterable[str]:
        return tuple(self.partitions)


class Harness:
    def __init__(self, options: GroupOptions | None = None) -> None:
        self.options = options or GroupOptions()
        self.topics = FakeTopics(orders=3, payments=1)
        self.now_ms = 0
        self.log: list[tuple[bytes, bytes | None, int] | tuple[int, bool]] = []
        self.alarms = AlarmHeap()
        self.replies: dict[Ticket, object] = {}
        self.outcomes: list[Outcome] = []
        self._tickets = count(1)
        self._ids = count(1)
        self.shard = self.new_shard()
        self.do(self.shard.on_loaded(self.now_ms))

    def new_shard(self) -> GroupShard:
        return GroupShard(options=self.options, topics=self.topics, new_id=lambda: str(next(self._ids)))

    def new_ticket(self) -> Ticket:
        return Ticket(next(self._tickets))

    def do(self, outcome: Outcome) -> None:
        producer_id = outcome.producer[0] if outcome.producer is not None else NO_PRODUCER_ID
        for key, value in outcome.records:
            self.log.append((key, value, producer_id))
            self.shard.replay(key, value, producer_id)
        for name, at_ms in outcome.alarms:
            self.alarms.set(0, name, at_ms)
        for ticket, response in outcome.replies:
            assert ticket not in self.replies, f"ticket {ticket} is answered twice"
            self.replies[ticket] = response
        self.outcomes.append(outcome)
        self._recount()

    def _recount(self) -> None:
        for group in self.shard._directory.alive.values():
            members = group.members.values()
            assert group.joined_count == sum(member.join_ticket is not None for member in members)
            assert group.offer_counts == Counter(name for member in members for name in member.protocols)

    def ask(self, api: str, request: object, *, version: int, client: str = "client") -> Ticket:
        ticket = self.new_ticket()
        context = RequestContext(version, client, "/127.0.0.1")
        self.do(getattr(self.shard, api)(request, context, ticket, self.now_ms))
        return ticket

    def advance(self, step_ms: int) -> None:
        end_ms = self.now_ms + step_ms
        while (next_ms := self.alarms.next_at_ms()) is not None and next_ms <= end_ms:
            self.now_ms = max(next_ms, self.now_ms)
            for _, key in self.alarms.due(self.now_ms):
                self.do(self.shard.on_alarm(key, self.now_ms))
        self.now_ms = end_ms

    def restart(self) -> None:
        given_up = self.shard.on_unload()
        assert given_up.records == []
        self.do(given_up)
        self.alarms.drop(0)
        self.shard = self.reloaded()
        self.do(self.shard.on_loaded(self.now_ms))

    def reloaded(self) -> GroupShard:
        shard = self.new_shard()
        for entry in self.log:
            if len(entry) == 2:
                shard.replay_marker(entry[0], committed=entry[1])
            else:
                shard.replay(*entry)
        return shard

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        self.log.append((producer_id, committed))
        self.shard.replay_marker(producer_id, committed=committed)
