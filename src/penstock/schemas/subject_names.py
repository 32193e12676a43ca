"""Under which subject a schema is registered: Confluent's three strategies, by short name or by the name of their class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from penstock.schemas.model import InvalidSchema

TOPIC_NAME: Final = "TopicNameStrategy"
RECORD_NAME: Final = "RecordNameStrategy"
TOPIC_RECORD_NAME: Final = "TopicRecordNameStrategy"
STRATEGIES: Final = (TOPIC_NAME, RECORD_NAME, TOPIC_RECORD_NAME)
OPTIONS: Final = {False: "value.subject.name.strategy", True: "key.subject.name.strategy"}
"""By whether it is about keys."""


def strategy_of(name: str) -> str:
    """`TOPIC_NAME`, `TopicNameStrategy` and `io.confluent.kafka.serializers.subject.TopicNameStrategy` are one. ValueError."""
    short = name.rpartition(".")[2].replace("_", "").lower().removesuffix("strategy")
    for strategy in STRATEGIES:
        if strategy.lower().removesuffix("strategy") == short:
            return strategy
    raise ValueError(f"'{name}' is not one of {', '.join(STRATEGIES)}")


def subject_of(
    topic: str,
    *,
    is_key: bool,
    strategy: str = TOPIC_NAME,
    full_name: Callable[[], str | None] = lambda: None,
) -> str:
    """`full_name` is asked only by strategies that need the record's name. InvalidSchema when it has none."""
    if strategy == TOPIC_NAME:
        return f"{topic}-{'key' if is_key else 'value'}"
    name = full_name()
    if name is None:
        raise InvalidSchema(f"{strategy} needs a schema with a name")
    return name if strategy == RECORD_NAME else f"{topic}-{name}"
