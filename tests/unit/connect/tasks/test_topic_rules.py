"""Which topics a source makes, and how."""

from __future__ import annotations

import pytest

from penstock.connect import InvalidConfig
from penstock.connect.tasks.topics import TopicRules

CONFIG = {
    "topic.creation.groups": "logs, others",
    "topic.creation.default.partitions": "3",
    "topic.creation.default.replication.factor": "-1",
    "topic.creation.default.compression.type": "lz4",
    "topic.creation.logs.include": "log.*,audit",
    "topic.creation.logs.exclude": "log-private",
    "topic.creation.logs.partitions": "9",
    "topic.creation.logs.cleanup.policy": "compact",
    "topic.creation.others.include": "l.*",
}


def rules(**changes: str) -> TopicRules:
    found = TopicRules.of({**CONFIG, **{name.replace("_", "."): value for name, value in changes.items()}})
    assert found is not None
    return found


def test_no_rules_where_none_are_given() -> None:
    assert TopicRules.of({"topic": "a"}) is None


def test_the_first_group_whose_pattern_matches_the_whole_name_counts() -> None:
    assert rules().rule("log-1").partitions == 9
    assert rules().rule("audit").partitions == 9
    assert rules().rule("my-log").partitions == 3
    assert rules().rule("log-private").configs == {}


def test_a_group_inherits_partitions_and_replicas_and_nothing_else() -> None:
    found = rules().rule("log-1")
    assert (found.replication, found.configs) == (-1, {"cleanup.policy": "compact"})
    assert rules().rule("x").configs == {"compression.type": "lz4"}
    assert rules().rule("letters")[:3] == (3, -1, {})


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="partitions"):
        rules(topic_creation_default_partitions="0")
    with pytest.raises(InvalidConfig, match="include"):
        rules(topic_creation_logs_include="(")
    with pytest.raises(InvalidConfig, match=r"topic\.creation\.default\.partitions"):
        TopicRules.of({"topic.creation.groups": "a"})
