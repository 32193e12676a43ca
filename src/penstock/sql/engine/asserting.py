"""ASSERT [NOT EXISTS] TOPIC and SCHEMA: looked for again until they are as the statement says, or its time is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.engine.entities import Entity, entity
from penstock.sql.engine.refusals import ASSERTION_FAILED, SqlRefused
from penstock.sql.parsing.statements import AssertSchema, AssertTopic

if TYPE_CHECKING:
    from penstock.sql.engine.engine import Engine

RETRY_S: Final = 0.1
TIMEOUT_MS: Final = 1000
"""Where the statement says none."""


def assert_topic(statement: AssertTopic, engine: Engine) -> Entity:
    def complaint() -> str | None:
        world = engine.world({})
        partitions, replicas = world.topic_partitions(statement.topic), world.topic_replicas(statement.topic)
        if not statement.exists:
            return None if partitions is None else f"Topic {statement.topic} exists"
        if partitions is None:
            return f"Topic {statement.topic} does not exist"
        there = {"PARTITIONS": partitions, "REPLICAS": replicas}
        return "\n".join(_mismatches(statement, there)) or None

    _until_right(complaint, statement.timeout_ms, statement.text)
    return entity("assert_topic", statement.text, topicName=statement.topic, exists=statement.exists)


def _mismatches(statement: AssertTopic, there: dict[str, Any]) -> list[str]:
    found = []
    for name, wanted in statement.properties:
        if name.upper() not in there:
            found.append(f"Cannot assert unknown topic property: {name}")
        elif wanted != there[name.upper()]:
            found.append(
                f"Mismatched configuration for topic {statement.topic}: For config {name.lower()}, "
                f"expected {wanted} got {there[name.upper()]}"
            )
    return found


def assert_schema(statement: AssertSchema, engine: Engine) -> Entity:
    schemas = engine.schemas
    if schemas is None:
        raise StatementRefused("No schema registry is configured: ksql.schema.registry.url")
    about = "".join(
        [
            f" subject name {statement.subject}" if statement.subject is not None else "",
            f" id {statement.id}" if statement.id is not None else "",
        ]
    )

    def complaint() -> str | None:
        if statement.id is not None:
            is_there = schemas.by_id(statement.id, statement.subject) is not None
        else:
            is_there = schemas.latest(statement.subject or "") is not None
        if is_there is statement.exists:
            return None
        return f"Schema with{about} {'does not exist' if statement.exists else 'exists'}"

    _until_right(complaint, statement.timeout_ms, statement.text)
    fields = {"subject": statement.subject, "id": statement.id, "exists": statement.exists}
    return entity("assert_schema", statement.text, **fields)


def _until_right(complaint: Callable[[], str | None], timeout_ms: int | None, statement: str) -> None:
    deadline_s = time.monotonic() + (TIMEOUT_MS if timeout_ms is None else timeout_ms) / 1000
    while (said := complaint()) is not None:
        if time.monotonic() >= deadline_s:
            raise SqlRefused(said, code=ASSERTION_FAILED, statement=statement)
        time.sleep(RETRY_S)
