"""/consumers/{group} and its instances: made, subscribed, read, committed, moved and deleted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, TypeVar

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

from penstock.rest import bodies, errors
from penstock.rest.access import Access, Accesses
from penstock.rest.addresses import Addresses, part
from penstock.rest.consumers.instance import Instance, InstanceConfig
from penstock.rest.consumers.instances import Instances
from penstock.rest.consumers.member import Member, Place, Seek
from penstock.rest.consumers.peers import Peers
from penstock.rest.consumers.reading import Bounds, read
from penstock.rest.content import ADMIN, FORMAT_OF, OF_FORMAT, V2
from penstock.rest.options import RestOptions
from penstock.rest.values import BINARY, READS, WITH_SCHEMA, Read
from penstock.web.call import Answer, Call
from penstock.web.errors import HttpError
from penstock.web.routes import Handler, Routes

T = TypeVar("T")

_AT: Final = "/consumers/{group}/instances/{instance}"
_CREATE_FIELDS: Final = frozenset(
    {"id", "name", "format", "auto.offset.reset", "auto.commit.enable", "fetch.min.bytes", "responseMinBytes",
     "consumer.request.timeout.ms", "requestWaitMs"}
)  # fmt: skip
_RESETS: Final = {"earliest": "earliest", "latest": "latest", "none": "error"}
MAX_NAME_CHARS: Final = 249
MAX_BYTES: Final = 10_000_000


class ConsumersResource:
    def __init__(
        self,
        accesses: Accesses,
        instances: Instances,
        options: RestOptions,
        addresses: Addresses,
        peers: Peers,
    ) -> None:
        self._accesses = accesses
        self._instances = instances
        self._peers = peers
        self._options = options
        self._addresses = addresses

    def add_to(self, routes: Routes) -> None:
        rows: tuple[tuple[str, str, Handler, str, str | None], ...] = (
            ("POST", "/consumers/{group}", self.create, "Make a consumer instance.", "its settings"),
            ("DELETE", _AT, self.delete, "Delete a consumer instance.", None),
            ("POST", f"{_AT}/subscription", self.subscribe, "Subscribe to topics, or to a pattern of names.", "topics"),
            ("GET", f"{_AT}/subscription", self.subscription, "What it has subscribed to.", None),
            ("DELETE", f"{_AT}/subscription", self.unsubscribe, "End the subscription.", None),
            ("POST", f"{_AT}/assignments", self.assign, "Take partitions by hand.", "partitions"),
            ("GET", f"{_AT}/assignments", self.assignments, "The partitions that it has.", None),
            ("POST", f"{_AT}/positions", self.seek, "Go to offsets, or to times.", "offsets and timestamps"),
            ("POST", f"{_AT}/positions/beginning", self.seek_to_beginning, "Go to the first records.", "partitions"),
            ("POST", f"{_AT}/positions/end", self.seek_to_end, "Go behind the last records.", "partitions"),
            ("POST", f"{_AT}/offsets", self.commit, "Commit offsets, or all that was returned.", "offsets, or nothing"),
            ("GET", f"{_AT}/offsets", self.committed, "Committed offsets.", "partitions"),
        )  # fmt: skip
        for method, pattern, handler, summary, body in rows:
            here = handler if pattern == "/consumers/{group}" else self._where_it_lives(handler)
            routes.add(method, pattern, here, summary, body=body, content=ADMIN)
        routes.add(
            "GET", f"{_AT}/records", self._where_it_lives(self.records), "The next records.", content=ADMIN, is_long=True,
            query={"timeout": "how long to wait, in ms", "max_bytes": "how much at most"},
        )  # fmt: skip

    def _where_it_lives(self, handler: Handler) -> Handler:
        """Here, or at another proxy."""

        async def handle(call: Call) -> object:
            is_here = (call["group"], call["instance"]) in self._instances
            if not is_here and self._peers.may_have(call):
                found = await self._peers.ask(call, call["instance"])
                if found is not None:
                    return found
                raise errors.instance_not_found()
            return await handler(call)

        return handle

    async def create(self, call: Call) -> object:
        access = await self._accesses.of(call)
        given = await bodies.json_object(call, _CREATE_FIELDS, may_be_empty=True)
        group = call["group"]
        name = bodies.text(given, "id", None) or bodies.text(given, "name", None)
        if name is not None and (len(name) > MAX_NAME_CHARS or not name.isprintable()):
            raise errors.invalid_consumer_config("the name is too long, or cannot be shown")
        instance = await self._instances.create(access, group, name, self._config(access, group, given))
        where = f"{self._addresses.base(call)}/consumers/{part(group)}/instances/{part(instance.name)}"
        return {"instance_id": instance.name, "base_uri": where}

    def _config(self, access: Access, group: str, given: dict[str, Any]) -> InstanceConfig:
        format_ = str(bodies.text(given, "format", BINARY)).upper()
        if format_ not in OF_FORMAT:
            raise errors.invalid_consumer_config(
                f"Invalid format type. Must be one of {', '.join(OF_FORMAT).lower()}"
            )
        if format_ in WITH_SCHEMA and access.registry is None:
            raise errors.invalid_consumer_config(f"the format {format_.lower()} needs schema.registry.url")
        settings = {"group.id": group}
        reset = bodies.text(given, "auto.offset.reset", None)
        if reset is not None:
            if reset.lower() not in _RESETS:
                raise errors.invalid_consumer_config(
                    f"Invalid value {reset[:100]} for configuration auto.offset.reset: must be earliest, latest or none"
                )
            settings["auto.offset.reset"] = _RESETS[reset.lower()]
        auto = given.get("auto.commit.enable")
        if auto is not None:
            if str(auto).lower() not in ("true", "false"):
                raise errors.invalid_consumer_config(
                    f"Invalid value {str(auto)[:100]} for configuration auto.commit.enable: must be true or false"
                )
            settings["enable.auto.commit"] = str(auto).lower()
        min_bytes = bodies.number(given, "fetch.min.bytes", bodies.number(given, "responseMinBytes", None))
        if min_bytes is not None and not -1 <= min_bytes <= MAX_BYTES:
            raise errors.consumer_config_out_of_bounds(f"fetch.min.bytes must be between -1 and {MAX_BYTES}")
        timeout_ms = bodies.number(
            given, "consumer.request.timeout.ms", bodies.number(given, "requestWaitMs", None)
        )
        if timeout_ms is not None and timeout_ms < 0:
            raise errors.consumer_config_out_of_bounds("consumer.request.timeout.ms must be at least 0")
        return InstanceConfig(
            format_,
            settings,
            self._options["consumer.request.timeout.ms"] if timeout_ms is None else timeout_ms,
            self._options["fetch.min.bytes"] if min_bytes is None else min_bytes,
        )

    async def _instance(self, call: Call) -> Instance:
        return self._instances.get(await self._accesses.of(call), call["group"], call["instance"])

    async def _done(self, call: Call, work: Callable[[Member], None]) -> Answer:
        await (await self._instance(call)).call(work)
        return Answer(status=204)

    async def delete(self, call: Call) -> object:
        await self._instances.delete(await self._accesses.of(call), call["group"], call["instance"])
        return Answer(status=204)

    async def subscribe(self, call: Call) -> object:
        given = await bodies.json_object(call, {"topics", "topic_pattern"})
        pattern = bodies.text(given, "topic_pattern", None)
        topics = bodies.items(given, "topics", [])
        if not all(isinstance(one, str) and one for one in topics):
            raise bodies.not_of_type(topics, "java.lang.String")
        if pattern is not None and not topics:
            return await self._done(call, lambda member: member.subscribe_pattern(pattern))
        return await self._done(call, lambda member: member.subscribe(topics))

    async def subscription(self, call: Call) -> object:
        return {"topics": await (await self._instance(call)).call(Member.subscription)}

    async def unsubscribe(self, call: Call) -> object:
        return await self._done(call, Member.unsubscribe)

    async def assign(self, call: Call) -> object:
        places = _places(await bodies.json_object(call, {"partitions"}))
        return await self._done(call, lambda member: member.assign(places))

    async def assignments(self, call: Call) -> object:
        found = await (await self._instance(call)).call(Member.assignment)
        return {"partitions": [{"topic": topic, "partition": number} for topic, number in found]}

    async def seek(self, call: Call) -> object:
        given = await bodies.json_object(call, {"offsets", "timestamps"})
        seeks = [
            Seek(*_place(one), _offset(one))
            for one in bodies.objects(bodies.items(given, "offsets", []), _OFFSET_FIELDS)
        ]
        times = [
            (*_place(one), _time_ms(bodies.text(one, "timestamp")))
            for one in bodies.objects(bodies.items(given, "timestamps", []), _TIME_FIELDS)
        ]
        return await self._done(call, lambda member: member.seek([*seeks, *member.offsets_for_times(times)]))

    async def seek_to_beginning(self, call: Call) -> object:
        return await self._seek_all(call, OFFSET_BEGINNING)

    async def seek_to_end(self, call: Call) -> object:
        return await self._seek_all(call, OFFSET_END)

    async def _seek_all(self, call: Call, offset: int) -> Answer:
        places = _places(await bodies.json_object(call, {"partitions"}))
        return await self._done(call, lambda member: member.seek([Seek(*place, offset) for place in places]))

    async def commit(self, call: Call) -> object:
        given = await bodies.json_object(call, {"offsets"}, may_be_empty=True)
        offsets: list[TopicPartition] | None = None
        if "offsets" in given:
            offsets = [
                # What was read last is given, what is read next is kept.
                TopicPartition(*_place(one), _offset(one) + 1, bodies.text(one, "metadata", ""))
                for one in bodies.objects(bodies.items(given, "offsets", []), _OFFSET_FIELDS)
            ]
        await (await self._instance(call)).call(lambda member: member.commit(offsets))
        return []

    async def committed(self, call: Call) -> object:
        places = _places(await _body_or_query(call))
        found = await (await self._instance(call)).call(lambda member: member.committed(places))
        return {
            "offsets": [
                {
                    "topic": one.topic,
                    "partition": one.partition,
                    "offset": one.offset,
                    "metadata": one.metadata or "",
                }
                for one in found
            ]
        }

    async def records(self, call: Call) -> object:
        access = await self._accesses.of(call)
        instance = self._instances.get(access, call["group"], call["instance"])
        config = instance.config
        content = OF_FORMAT[config.format]
        asked = call.answer_type
        if FORMAT_OF.get(asked, config.format) != config.format and asked != V2:
            raise errors.format_mismatch()
        timeout_ms = _number(call, "timeout")
        max_bytes = _number(call, "max_bytes")
        highest: int = self._options["consumer.request.max.bytes"]
        patience_ms: int = self._options["penstock.consumer.assignment.timeout.ms"]
        bounds = Bounds(
            timeout_s=(min(timeout_ms, config.timeout_ms) if timeout_ms > 0 else config.timeout_ms) / 1000,
            max_bytes=min(max_bytes, highest) if max_bytes > 0 else highest,
            min_bytes=config.min_bytes,
            assignment_s=(min(timeout_ms, patience_ms) if timeout_ms > 0 else patience_ms) / 1000,
        )
        reader = _reader(access, config.format)
        found = await instance.call(lambda member: read(member, bounds, reader, instance.is_over))
        return Answer(found, content_type=asked if asked not in FORMAT_OF else content)


def _reader(access: Access, format_: str) -> Read:
    if format_ in READS:
        return READS[format_]
    assert access.registry is not None  # an instance of such a format is not made without one
    return access.registry.reader(format_)


_PLACE_FIELDS: Final = frozenset({"topic", "partition"})
_OFFSET_FIELDS: Final = frozenset({"topic", "partition", "offset", "metadata"})
_TIME_FIELDS: Final = frozenset({"topic", "partition", "timestamp", "metadata"})


def _places(given: dict[str, Any]) -> list[Place]:
    return [_place(one) for one in bodies.objects(bodies.items(given, "partitions", []), _PLACE_FIELDS)]


def _place(one: dict[str, Any]) -> Place:
    topic, number = bodies.text(one, "topic"), bodies.number(one, "partition")
    if not topic or number < 0:
        raise HttpError(422, "a topic and a partition of 0 or more must be named")
    return topic, number


def _offset(one: dict[str, Any]) -> int:
    offset: int = bodies.number(one, "offset", high=bodies.LONG_MAX - 1)
    if offset < 0:
        raise HttpError(422, "offset must be greater than or equal to 0")
    return offset


def _time_ms(text: str) -> int:
    try:
        when = datetime.fromisoformat(text)
        if when.tzinfo is None:
            raise ValueError("it has no zone")
        return round(when.timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise HttpError(400, f"timestamp: '{text[:60]}' is not ISO 8601: {error}") from None


async def _body_or_query(call: Call) -> dict[str, Any]:
    """A GET with a body is what Kafka REST has; who cannot send one may name partitions in the query: ?partition=orders:0"""
    named = call.queries("partition")
    if not named:
        given = await bodies.json_object(call, {"partitions"}, may_be_empty=True)
        if not given:
            raise errors.partition_not_found()
        return given
    found = []
    for word in named:
        topic, _, number = word.rpartition(":")
        found.append({"topic": topic, "partition": number})
    return {"partitions": found}


def _number(call: Call, name: str) -> int:
    """-1 where it is not given."""
    text = call.query(name)
    if text is None:
        return -1
    try:
        return int(text) if len(text) <= 19 else -1
    except ValueError:
        raise HttpError(404) from None
