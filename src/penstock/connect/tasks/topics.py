"""Topics that a source writes to, made by the rules of its configuration (`topic.creation.…`) before the first record."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException

from penstock.client.librdkafka_calls import NO_ANSWER, UNKNOWN_TOPIC
from penstock.connect.errors import ConnectError, InvalidConfig
from penstock.connect.settings import Kind
from penstock.connect.tasks.settings import value_of, with_prefix

log = logging.getLogger("penstock.connect")

GROUPS: Final = "topic.creation.groups"
DEFAULT: Final = "default"
_OWN: Final = ("include", "exclude", "partitions", "replication.factor")
TIMEOUT_S: Final = 30.0
_NOT_MADE: Final = (
    "Task failed to create new topic {name}. Ensure that the task is authorized to create topics or that the topic exists and "
    "restart the task: {why}"
)


class Rule(NamedTuple):
    """-1 is the broker's default."""

    partitions: int
    replication: int
    configs: Mapping[str, str]
    include: Sequence[re.Pattern[str]] = ()
    exclude: Sequence[re.Pattern[str]] = ()

    def takes(self, topic: str) -> bool:
        return any(each.fullmatch(topic) for each in self.include) and not any(
            each.fullmatch(topic) for each in self.exclude
        )


class TopicRules:
    """None of the configuration's: no topic is made by rules, and brokers make them if they do so."""

    def __init__(self, default: Rule, groups: Sequence[Rule]) -> None:
        self._default, self._groups = default, groups

    @classmethod
    def of(cls, config: Mapping[str, str]) -> TopicRules | None:
        """InvalidConfig."""
        if not any(name.startswith("topic.creation.") for name in config):
            return None
        default = _rule(config, DEFAULT, None)
        named = [each.strip() for each in config.get(GROUPS, "").split(",") if each.strip()]
        return cls(default, [_rule(config, name, default) for name in named if name != DEFAULT])

    def rule(self, topic: str) -> Rule:
        return next((each for each in self._groups if each.takes(topic)), self._default)


class TopicMaker:
    """Called with each new topic's name. `admin` is asked for once, and only if there is something to do."""

    def __init__(self, rules: TopicRules, admin: Callable[[], Any]) -> None:
        self._rules, self._make_admin = rules, admin
        self._admin: Any = None

    def __call__(self, topic: str) -> None:
        """Returns when it is there. ConnectError."""
        if self._admin is None:
            self._admin = self._make_admin()
        rule = self._rules.rule(topic)
        make_topic(self._admin, topic, rule.partitions, rule.replication, rule.configs)


def make_topic(admin: Any, name: str, partitions: int, replication: int, configs: Mapping[str, str]) -> None:
    """Unless it is there. ConnectError."""
    from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

    try:
        if _is_there(admin, name):
            return
        topic = NewTopic(
            name, num_partitions=partitions, replication_factor=replication, config=dict(configs)
        )
        admin.create_topics([topic], operation_timeout=TIMEOUT_S)[name].result(TIMEOUT_S)
        log.info("made the topic %s", name)
    except KafkaException as error:
        cause = error.args[0]
        if cause.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        away = " (the cluster does not answer)" if cause.code() in NO_ANSWER else ""
        raise ConnectError(_NOT_MADE.format(name=name, why=cause.str() + away)) from error


def _is_there(admin: Any, name: str) -> bool:
    from confluent_kafka import TopicCollection

    # Not `list_topics`, for which a broker would make it by its own rules.
    asked = admin.describe_topics(TopicCollection([name]), request_timeout=TIMEOUT_S)
    try:
        asked[name].result(TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() in UNKNOWN_TOPIC:
            return False
        raise
    return True


def _rule(config: Mapping[str, str], name: str, default: Rule | None) -> Rule:
    """A group has the default's partitions and replicas where it says nothing about them, and nothing else of it."""
    prefix = f"topic.creation.{name}."
    configs = {key: value for key, value in with_prefix(config, prefix).items() if key not in _OWN}
    partitions = [] if default is None else [default.partitions]
    replication = [] if default is None else [default.replication]
    return Rule(
        _count(value_of(config, f"{prefix}partitions", Kind.INT, *partitions), f"{prefix}partitions"),
        _count(
            value_of(config, f"{prefix}replication.factor", Kind.SHORT, *replication),
            f"{prefix}replication.factor",
        ),
        configs,
        _patterns(config, f"{prefix}include") if default is not None else (),
        _patterns(config, f"{prefix}exclude", default="") if default is not None else (),
    )


def _count(number: int, name: str) -> int:
    if number == 0 or number < -1:
        raise InvalidConfig(
            f"Invalid value {number} for configuration {name}: Value must be at least 1, or -1 for the broker's default"
        )
    return number


def _patterns(config: Mapping[str, str], name: str, **default: str) -> list[re.Pattern[str]]:
    text = value_of(config, name, Kind.STRING, **default)
    try:
        return [re.compile(each.strip()) for each in text.split(",") if each.strip()]
    except re.error as error:
        raise InvalidConfig(f"Invalid value {text} for configuration {name}: {error}") from None
