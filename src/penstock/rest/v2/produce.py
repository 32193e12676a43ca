"""POST /topics/{topic} and /topics/{topic}/partitions/{partition}: a list of records.

A request is answered with 200 when its records were tried; each has an offset or an error of its own. What is wrong with the
request itself refuses all of it, before anything is written.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from penstock.client.errors import NoSuchTopic
from penstock.rest import bodies, errors
from penstock.rest.access import Accesses
from penstock.rest.content import FORMAT_OF, PRODUCE
from penstock.rest.produce.batch import Batch, Record, told
from penstock.rest.produce.known_topics import KnownTopics
from penstock.rest.produce.large_bodies import parsed
from penstock.rest.produce.turns import Turns
from penstock.rest.registry_values import RegistryValues, SchemaSpec
from penstock.rest.values import WITH_SCHEMA, WRITES, Write, no_registry
from penstock.web.call import Answer, Call
from penstock.web.errors import HttpError
from penstock.web.routes import Routes

_FIELDS: Final = frozenset({"records", "key_schema", "key_schema_id", "value_schema", "value_schema_id"})
_RECORD_FIELDS: Final = frozenset({"key", "value", "partition"})


class ProduceResource:
    def __init__(self, accesses: Accesses) -> None:
        self._accesses = accesses

    def add_to(self, routes: Routes) -> None:
        for pattern, handler, summary in (
            ("/topics/{topic}", self.to_topic, "Write records."),
            ("/topics/{topic}/partitions/{partition}", self.to_partition, "Write records to one partition."),
        ):
            routes.add("POST", pattern, handler, summary, body="records", content=PRODUCE)

    async def to_topic(self, call: Call) -> object:
        return await self._produced(call, -1)

    async def to_partition(self, call: Call) -> object:
        return await self._produced(call, call.path_number("partition"))

    async def _produced(self, call: Call, partition: int) -> object:
        access = self._accesses.at_once(call) or await self._accesses.of(call)
        request = await bodies.json_object(call, _FIELDS, parsed=parsed)
        records = bodies.items(request, "records", [])
        if not records:
            raise HttpError(422, "records may not be empty")
        topic = call["topic"]
        partitions = await _partitions(access.topics, topic, partition)
        format_ = FORMAT_OF[call.content_type]
        key_id, value_id = None, None
        if format_ in WITH_SCHEMA:
            write_key, write_value, key_id, value_id = await self._with_schemas(
                access.registry, format_, topic, request, records
            )
        else:
            write_key = write_value = WRITES[format_]
        with access.used():
            written, highest = await _written(records, write_key, write_value, partition)
            if highest >= partitions:
                partitions = await access.topics.again(topic)  # it may have grown
            sender = access.sender_at_once() or await access.sender()
            batch = Batch(sender, topic, partitions)
            outcomes = await batch.send(written)
        if batch.is_topic_gone:
            access.topics.forget(topic)
        ids = orjson.dumps({"key_schema_id": key_id, "value_schema_id": value_id})
        return Answer(b'{"offsets":' + await told(outcomes) + b"," + ids[1:])

    @staticmethod
    async def _with_schemas(
        registry: RegistryValues | None,
        format_: str,
        topic: str,
        request: dict[str, Any],
        records: list[Any],
    ) -> tuple[Write, Write, int | None, int | None]:
        """How keys and values are written, and the ids of their schemas."""
        found: list[tuple[Write, int | None]] = []
        for part, missing in (("key", errors.key_schema_missing), ("value", errors.value_schema_missing)):
            spec = SchemaSpec(
                format_,
                text=bodies.text(request, f"{part}_schema", None),
                schema_id=bodies.number(request, f"{part}_schema_id", None),
            )
            if spec.text is None and spec.schema_id is None:
                if any(isinstance(one, dict) and one.get(part) is not None for one in records):
                    raise missing()
                found.append((WRITES["BINARY"], None))
                continue
            if registry is None:
                raise no_registry()
            resolved = await registry.resolved(topic, spec, is_key=part == "key")
            found.append((resolved.write, resolved.schema_id))
        (write_key, key_id), (write_value, value_id) = found
        return write_key, write_value, key_id, value_id


async def _partitions(topics: KnownTopics, topic: str, partition: int) -> int:
    """How many the topic has; HttpError 404 for a topic or a partition that is not there."""
    try:
        known = topics.at_once(topic)
        count = known if known is not None else await topics.partitions(topic)
        if known is not None and partition >= count:
            count = await topics.again(topic)  # it may have grown
    except NoSuchTopic:
        raise errors.topic_not_found() from None
    if partition >= count or partition < -1:
        raise errors.partition_not_found()
    return count


async def _written(
    records: list[Any], write_key: Write, write_value: Write, partition: int
) -> tuple[list[Record], int]:
    """The bytes of all records, before the first one is sent; and the highest partition that one of them names."""
    turns, highest = Turns(), -1
    found: list[Record] = []
    for record in records:
        if not isinstance(record, dict) or not record.keys() <= _RECORD_FIELDS:
            bodies.checked_object(record, _RECORD_FIELDS)
        wished = partition
        if record.get("partition") is not None:
            wished = bodies.number(record, "partition")
            if wished < 0:
                raise HttpError(422, f"partition may not be negative: {wished}")
            if partition >= 0:
                raise HttpError(422, "Unrecognized field: partition")
            highest = max(highest, wished)
        key = record.get("key")
        found.append((write_value(record.get("value")), None if key is None else write_key(key), wished))
        if turns.is_over():
            await turns.give_way()
    return found, highest
