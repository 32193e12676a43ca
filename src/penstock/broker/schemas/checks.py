"""Whether the schemas that a batch names are those of its topic."""

from __future__ import annotations

import logging
import struct
from asyncio import Future, ensure_future, shield
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from penstock.config.layers import BrokerConfig
from penstock.model.errors import ApiError, ErrorCode
from penstock.records.compression import Plain
from penstock.records.walk import STEP_RECORDS, Steps, read_varint
from penstock.runtime.clock import Clock
from penstock.runtime.pools import Pool
from penstock.storage.options import SchemaValidation

if TYPE_CHECKING:
    from penstock.broker.schemas.registry import Registry

log = logging.getLogger("penstock.broker")

FRAME_BYTES: Final = 5
GUID_MAGIC: Final = 1
GUID_FRAME_BYTES: Final = 17
MAX_KEPT: Final = 10_000
KNOWN_KEPT_S: Final = 600.0
"""How long a schema that is registered counts as registered."""
MISSING_KEPT_S: Final = 2.0
"""How long one that is not counts as not: its producer may register it this moment."""
AWAY_KEPT_S: Final = 1.0
"""How long the registry counts as away after it did not answer: a queue of requests does not wait for each in turn."""
_ID: Final = struct.Struct(">i")


SchemaName = int | UUID
"""An id, or a GUID."""


class RegistryAway(Exception):
    """It does not answer, or not as a schema registry does; the text says which, in one line."""


class Registered(NamedTuple):
    subjects: frozenset[str]
    full_name: str | None = None
    """Of the record; asked for only where a strategy needs it."""

    def belongs_to(self, topic: str, what: str, strategy: str) -> bool:
        if strategy == "TopicNameStrategy":
            return f"{topic}-{what}" in self.subjects
        name = self.full_name
        subject = name if strategy == "RecordNameStrategy" else f"{topic}-{name}"
        return name is not None and subject in self.subjects


class NamedIds(NamedTuple):
    """The ids of schemas in a batch (or GUIDs, as a record names it), each with the first record that names it."""

    keys: Mapping[SchemaName, int]
    values: Mapping[SchemaName, int]


def schema_ids(plain: Plain, count: int, validation: SchemaValidation) -> Steps[NamedIds]:
    """Of records that have been checked already. ApiError for the first that names no schema where it must."""
    keys: dict[SchemaName, int] = {}
    values: dict[SchemaName, int] = {}
    position = 0
    for record in range(count):
        if record % STEP_RECORDS == STEP_RECORDS - 1:
            yield None
        length, position = read_varint(plain, position)
        end = position + length
        _, position = read_varint(plain, position + 1)  # behind the attributes
        _, position = read_varint(plain, position)
        length, position = read_varint(plain, position)
        if validation.key_strategy is not None and length >= 0:
            keys.setdefault(_id_at(plain, position, length, record, "key"), record)
        length, position = read_varint(plain, position + max(length, 0))
        if validation.value_strategy is not None and length >= 0:
            values.setdefault(_id_at(plain, position, length, record, "value"), record)
        position = end
    return NamedIds(keys, values)


def _id_at(plain: Plain, position: int, length: int, record: int, what: str) -> SchemaName:
    if length >= GUID_FRAME_BYTES and plain[position] == GUID_MAGIC:
        return UUID(bytes=bytes(plain[position + 1 : position + GUID_FRAME_BYTES]))
    if length < FRAME_BYTES or plain[position] != 0:
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            f"the {what} of record {record} does not begin with the id of a schema (a zero byte and four more, or a one and "
            f"sixteen), which the topic wants (confluent.{what}.schema.validation)",
            record=record,
        )
    found: int = _ID.unpack_from(plain, position + 1)[0]
    return found


class _Question(NamedTuple):
    schema_id: SchemaName
    topic: str
    what: str
    """"key" or "value"."""
    strategy: str


class SchemaChecks:
    def __init__(self, config: BrokerConfig, clock: Clock, threads: Pool) -> None:
        self._registry: Registry | None = None
        if config.get("confluent.schema.registry.url"):
            from penstock.broker.schemas.registry import Registry

            self._registry = Registry.of(config)
        self._allows_unknown = config.get("penstock.schema.validation.unavailable") == "allow"
        self._clock = clock
        self._threads = threads
        self._kept: OrderedDict[_Question, tuple[bool, float]] = OrderedDict()
        self._asked: dict[_Question, Future[bool]] = {}
        self._away_until_s = 0.0

    async def check(self, topic: str, validation: SchemaValidation, ids: NamedIds) -> None:
        """ApiError, with the record that is to blame."""
        for what, strategy, found in (
            ("key", validation.key_strategy, ids.keys),
            ("value", validation.value_strategy, ids.values),
        ):
            if strategy is not None:
                for schema_id, record in found.items():
                    await self._check_one(_Question(schema_id, topic, what, strategy), record)

    async def _check_one(self, question: _Question, record: int) -> None:
        schema_id, topic, what, strategy = question
        registry = self._registry
        if registry is None:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"the topic has confluent.{what}.schema.validation, but no confluent.schema.registry.url is set on the broker",
            )
        try:
            is_known = await self._belongs(registry, question)
        except RegistryAway as away:
            if self._allows_unknown:
                return
            raise ApiError(
                ErrorCode.REQUEST_TIMED_OUT, f"whether schema {schema_id} may be used is not known: {away}"
            ) from None
        if not is_known:
            wanted = f"{topic}-{what}" if strategy == "TopicNameStrategy" else f"the subject of {strategy}"
            raise ApiError(
                ErrorCode.INVALID_RECORD,
                f"the {what} of record {record} names schema {schema_id}, which is not registered under {wanted}",
                record=record,
            )

    async def _belongs(self, registry: Registry, question: _Question) -> bool:
        now_s = self._clock.monotonic()
        was_there, asked_s = self._kept.get(question, (False, -KNOWN_KEPT_S))
        if now_s - asked_s < (KNOWN_KEPT_S if was_there else MISSING_KEPT_S):
            self._kept.move_to_end(question)
            return was_there
        if now_s < self._away_until_s:
            if was_there:
                return True
            raise RegistryAway("the schema registry does not answer")
        under_way = self._asked.get(question)
        if under_way is not None and await shield(under_way):
            return True
        # What was asked before we came may have been answered before the schema was registered.
        asked = self._asked.get(question)
        if asked is None:
            asked = self._asked[question] = ensure_future(self._ask(registry, question))
            asked.add_done_callback(lambda _: self._asked.pop(question, None))
        try:
            return await shield(asked)
        except RegistryAway:
            if was_there:
                return True  # what it said last
            raise

    async def _ask(self, registry: Registry, question: _Question) -> bool:
        schema_id, topic, what, strategy = question
        asked_s = self._clock.monotonic()
        try:
            found = await self._threads.run(registry.registered, schema_id, strategy != "TopicNameStrategy")
        except RegistryAway as away:
            log.warning("records of topics with schema validation cannot be checked: %s", away)
            self._away_until_s = self._clock.monotonic() + AWAY_KEPT_S
            raise
        is_there = found.belongs_to(topic, what, strategy)
        self._kept[question] = (is_there, asked_s)
        self._kept.move_to_end(question)
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        return is_there
