import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.cli.group_members import commit, create_topic, member, produce

Kafka = Callable[..., Any]

MISSING_EXECUTE = "WARN: No action will be performed as the --execute option is missing. In version 5.0,"


@pytest.fixture
def topic(broker: PenstockBroker, topic_name: str) -> str:
    """Two partitions with 5 and 3 records."""
    create_topic(broker.bootstrap, topic_name, partitions=2)
    produce(broker.bootstrap, topic_name, [5, 3])
    return topic_name


@pytest.fixture
def group(broker: PenstockBroker, topic: str) -> str:
    """A group without members that has read 2 records of the first partition; its name is the topic's with a g."""
    name = f"g-{topic}"
    commit(broker.bootstrap, name, topic, {0: 2})
    return name


@pytest.fixture
def groups(kafka: Kafka) -> Kafka:
    return lambda *words: kafka("consumer-groups", *words)


def cells(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line]


def reset_rows(text: str) -> list[tuple[int, int]]:
    """(partition, new offset) of what --reset-offsets printed."""
    return [(int(row[2]), int(row[3])) for row in cells(text)[1:]]


def test_groups_are_listed_one_per_line(groups: Kafka, group: str) -> None:
    done = groups("--list")
    assert group in done.out.splitlines()
    assert (done.err, done.code) == ("", 0)


def test_groups_are_listed_by_state_and_type(groups: Kafka, group: str) -> None:
    table = groups("--list", "--state", "--type").out
    assert cells(table)[0] == ["GROUP", "TYPE", "STATE"]
    assert [group, "Classic", "Empty"] in cells(table)
    assert [group, "Empty"] in cells(groups("--list", "--state", "empty,stable").out)
    assert [group, "Stable"] not in cells(groups("--list", "--state", "stable").out)
    assert [group, "Classic"] not in cells(groups("--list", "--type", "consumer").out)


def test_a_group_without_members_is_described_with_its_lag(groups: Kafka, group: str, topic: str) -> None:
    done = groups("--describe", "--group", group)
    assert done.err == f"\nConsumer group '{group}' has no active members.\n"
    blank, header, row = done.out.splitlines()
    assert blank == ""
    assert header.split() == [
        "GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID",
    ]  # fmt: skip
    assert row.split() == [group, topic, "0", "2", "5", "3", "-", "-", "-"]


def test_columns_are_fifteen_wide_and_grow(groups: Kafka, broker: PenstockBroker, topic: str) -> None:
    commit(broker.bootstrap, "short", topic, {1: 1})
    _, header, row = groups("--describe", "--group", "short").out.splitlines()
    width = max(15, len(topic))
    assert header.startswith(
        f"{'GROUP':<15} {'TOPIC':<{width}} PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG"
    )
    assert row.startswith(f"{'short':<15} {topic:<{width}} 1          1               3               2 ")


def test_members_are_described_with_what_they_have(
    groups: Kafka, broker: PenstockBroker, group: str, topic: str
) -> None:
    with member(broker.bootstrap, group, [topic], client_id="reader"):
        members = groups("--describe", "--group", group, "--members", "--verbose").out
        (row,) = cells(members)[1:]
        assert row[0] == group
        assert re.fullmatch(r"reader-[0-9a-f-]{36}", row[1])
        assert row[2:5] == ["/127.0.0.1", "reader", "2"]
        assert row[6] == f"{topic}:0,1"
        state = groups("--describe", "--group", group, "--state").out
        assert cells(state)[1] == [group, broker.bootstrap, "(1)", "range", "Stable", "1"]
        offsets = groups("--describe", "--group", group, "--offsets").out
        assert {row[8] for row in cells(offsets)[1:]} == {"reader"}


def test_a_static_member_shows_its_instance_id(
    groups: Kafka, broker: PenstockBroker, group: str, topic: str
) -> None:
    with member(broker.bootstrap, group, [topic], group_instance_id="desk-7"):
        members = cells(groups("--describe", "--group", group, "--members").out)
        assert members[0] == ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
        assert members[1][2] == "desk-7"


def test_a_group_of_the_newer_protocol_shows_its_epochs(
    groups: Kafka, broker: PenstockBroker, group: str, topic: str
) -> None:
    with member(broker.bootstrap, group, [topic], group_protocol="consumer"):
        (row,) = cells(groups("--describe", "--group", group, "--members", "--verbose").out)[1:]
        assert row[5].isdigit()
        assert row[6:9] == [f"{topic}:0,1", row[5], f"{topic}:0,1"]
        state = cells(groups("--describe", "--group", group, "--state", "--verbose").out)[1]
        assert state[4] == "Stable"
        assert state[5] == state[6] == row[5]


def test_all_groups_are_described_in_the_order_of_their_names(
    groups: Kafka, broker: PenstockBroker, group: str, topic: str
) -> None:
    commit(broker.bootstrap, f"a{group}", topic, {0: 1})
    shown = [
        row[0] for row in cells(groups("--describe", "--all-groups", "--state").out) if row[0] != "GROUP"
    ]
    assert shown == sorted(shown)
    assert {group, f"a{group}"} <= set(shown)


def test_a_group_that_is_not_there_is_told_and_the_next_step_named(groups: Kafka, broker: Any) -> None:
    done = groups("--describe", "--group", "nope")
    assert done == (
        "\nError: Executing consumer group command failed due to "
        "org.apache.kafka.common.errors.GroupIdNotFoundException: Group nope not found.\n",
        f"These groups are there: kafka-consumer-groups --bootstrap-server {broker.bootstrap} --list\n",
        0,
    )


def test_a_group_is_deleted(groups: Kafka, group: str) -> None:
    assert groups("--delete", "--group", group) == (
        f"Deletion of requested consumer groups ('{group}') was successful.\n",
        "",
        0,
    )
    assert group not in groups("--list").out.splitlines()


def test_what_cannot_be_deleted_is_listed_with_the_reason(
    groups: Kafka, broker: PenstockBroker, group: str, topic: str
) -> None:
    with member(broker.bootstrap, f"busy-{topic}", [topic]):
        done = groups("--delete", "--group", f"busy-{topic}", "--group", group)
    assert done.out == (
        "\nError: Deletion of some consumer groups failed:\n"
        f"* Group 'busy-{topic}' could not be deleted due to: "
        "org.apache.kafka.common.errors.GroupNotEmptyException: The group is not empty.\n"
        f"\nThese consumer groups were deleted successfully: '{group}'\n"
    )
    assert done.code == 0


def test_offsets_of_a_topic_are_deleted(groups: Kafka, group: str, topic: str) -> None:
    done = groups("--delete-offsets", "--group", group, "--topic", topic, "--topic", "nope")
    first, *rows = done.out.splitlines()
    assert first == f"Request succeeded for deleting offsets from group {group}."
    assert [row.split()[:3] for row in rows[1:]] == [
        ["TOPIC", "PARTITION", "STATUS"],
        ["nope", "-", "Error:"],
        [topic, "0", "Successful"],
        [topic, "1", "Successful"],
    ]
    assert topic not in groups("--describe", "--group", group).out.split()


def test_offsets_that_a_member_needs_are_kept(
    groups: Kafka, broker: PenstockBroker, group: str, topic: str
) -> None:
    with member(broker.bootstrap, group, [topic]):
        done = groups("--delete-offsets", "--group", group, "--topic", f"{topic}:0")
    assert done.out.startswith(
        "\nError: Encountered some partition-level error, see the follow-up details.\n\n"
    )
    assert "GroupSubscribedToTopicException: Deleting offsets of a topic is forbidden" in done.out


def test_a_reset_without_execute_changes_nothing(groups: Kafka, group: str, topic: str) -> None:
    done = groups("--reset-offsets", "--group", group, "--topic", topic, "--to-latest")
    assert done.err.startswith(MISSING_EXECUTE)
    assert sorted(reset_rows(done.out)) == [(0, 5), (1, 3)]
    assert cells(groups("--describe", "--group", group).out)[1][3] == "2"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--to-earliest"], {0: 0, 1: 0}),
        (["--to-latest"], {0: 5, 1: 3}),
        (["--to-current"], {0: 2, 1: 3}),
        (["--to-offset", "1"], {0: 1, 1: 1}),
        (["--to-offset", "4"], {0: 4, 1: 3}),
        (["--by-duration", "PT1H"], {0: 0, 1: 0}),
        (["--to-datetime", "2020-01-01T00:00:00.000"], {0: 0, 1: 0}),
        (["--to-datetime", "2099-01-01T00:00:00.000Z"], {0: 5, 1: 3}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_every_form_of_reset_reaches_the_group(
    groups: Kafka, group: str, topic: str, words: list[str], expected: dict[int, int]
) -> None:
    done = groups("--reset-offsets", "--group", group, "--topic", topic, *words, "--execute")
    assert dict(reset_rows(done.out[done.out.rindex("GROUP") :])) == expected
    described = cells(groups("--describe", "--group", group).out)[1:]
    assert {int(row[2]): int(row[3]) for row in described} == expected


def test_offsets_are_shifted_and_stay_within_the_log(groups: Kafka, group: str, topic: str) -> None:
    reset = ("--reset-offsets", "--group", group, "--all-topics", "--execute", "--shift-by")
    assert reset_rows(groups(*reset, "1").out) == [(0, 3)]
    assert reset_rows(groups(*reset, "-2").out) == [(0, 1)]
    done = groups(*reset, "-100")
    assert done.err == (
        f"WARN: New offset (-99) is lower than earliest offset for topic partition {topic}-0. Value will be set to 0\n"
    )
    assert reset_rows(done.out) == [(0, 0)]


def test_what_was_exported_can_be_put_back(groups: Kafka, group: str, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    exported = groups(
        "--reset-offsets", "--group", group, "--all-topics", "--to-current", "--dry-run", "--export"
    )
    assert exported == (f"{topic},0,2\n\n", "", 0)
    file.write_text(exported.out)
    groups("--reset-offsets", "--group", group, "--all-topics", "--to-latest", "--execute")
    back = groups("--reset-offsets", "--group", group, "--from-file", str(file), "--execute")
    assert reset_rows(back.out) == [(0, 2)]
    assert cells(groups("--describe", "--group", group).out)[1][3] == "2"


def test_several_groups_are_exported_with_their_names(
    groups: Kafka, broker: PenstockBroker, group: str, topic: str, tmp_path: Path
) -> None:
    other = f"other-{topic}"
    both = ("--group", group, "--group", other)
    exported = groups(
        "--reset-offsets", *both, "--topic", f"{topic}:1", "--to-latest", "--dry-run", "--export"
    ).out
    assert sorted(exported.split()) == sorted([f"{group},{topic},1,3", f"{other},{topic},1,3"])
    file = tmp_path / "offsets.csv"
    file.write_text(exported)
    done = groups("--reset-offsets", *both, "--from-file", str(file), "--execute")
    assert {row[0] for row in cells(done.out)[1:]} == {group, other}
    assert [other, topic, "1", "3"] == cells(groups("--describe", "--group", other).out)[1][:4]


def test_a_group_with_members_is_not_reset(
    groups: Kafka, broker: PenstockBroker, group: str, topic: str
) -> None:
    with member(broker.bootstrap, group, [topic]):
        done = groups("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
    assert done.out.startswith(
        f"\nError: Assignments can only be reset if the group '{group}' is inactive, "
        "but the current state is Stable.\n\nGROUP "
    )
    assert done.code == 0


def test_a_group_reads_again_from_the_beginning_after_a_reset(
    kafka: Kafka, groups: Kafka, topic: str
) -> None:
    name = f"replay-{topic}"
    read = ("console-consumer", "--topic", topic, "--group", name, "--max-messages", "8")
    settings = ("--command-property", "auto.offset.reset=earliest", "--timeout-ms", "20000")
    first = kafka(*read, *settings).out.split()
    assert len(first) == 8
    done = groups("--group", name, "--reset-offsets", "--to-earliest", "--execute", "--topic", topic)
    assert sorted(reset_rows(done.out)) == [(0, 0), (1, 0)]
    assert sorted(kafka(*read, *settings).out.split()) == sorted(first)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--topic", "nope", "--to-latest"], "This server does not host this topic-partition."),
        (["--topic", "TOPIC:9", "--to-latest"], 'The partitions "TOPIC-9" do not exist'),
        (["--topic", "TOPIC", "--to-offset", "x"], "Cannot parse argument 'x' of option to-offset"),
        (["--topic", "TOPIC", "--by-duration", "1h"], "Text cannot be parsed to a Duration"),
        (
            ["--topic", "TOPIC", "--to-datetime", "today"],
            "java.text.ParseException: Error parsing timestamp. It does not contain a 'T' according to ISO8601 format",
        ),
        (["--from-file", "/nope.csv"], "java.io.IOException: Unable to read file /nope.csv"),
    ],
)
def test_a_reset_that_cannot_be_planned_is_one_line(
    groups: Kafka, group: str, topic: str, words: list[str], reason: str
) -> None:
    meant = [word.replace("TOPIC", topic) for word in words]
    done = groups("--reset-offsets", "--group", group, "--dry-run", *meant)
    expected = f"\nError: Executing consumer group command failed due to {reason.replace('TOPIC', topic)}\n"
    assert done == (expected, "", 0)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--list", "--state", "foo"], "Invalid state list 'foo'. Valid states are: PreparingRebalance,"),
        (["--list", "--type", "share"], "Invalid types list 'share'. Valid types are: Classic, Consumer"),
        (["--describe"], "Option [describe] takes one of these options: [group], [all-groups]"),
        (["--list", "--delete", "--all-groups"], "Command must include exactly one action: --list, --describe, "),
        (["--describe", "--group", "g", "--all-groups"], 'Option "[group]" can\'t be used with option "[all-groups]"'),
        (["--delete-offsets", "--group", "g"], "Option [delete-offsets] takes the following options: [group], [topic]"),
        (
            ["--reset-offsets", "--group", "g", "--to-latest", "--to-earliest", "--dry-run"],
            'Option "[to-earliest]" can\'t be used with option "[to-latest]"',
        ),
        (
            ["--reset-offsets", "--group", "g", "--execute", "--dry-run"],
            "Option [reset-offsets] only accepts one of [execute] and [dry-run]",
        ),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together_are_told_above_the_help(
    run: Kafka, words: list[str], reason: str
) -> None:
    done = run("kafka-consumer-groups", "--bootstrap-server", "localhost:1", *words)
    assert done.err.startswith(reason)
    assert "--reset-offsets" in done.err
    assert done.code == 1


def test_a_regular_expression_is_checked_without_a_broker(run: Kafka) -> None:
    assert run("kafka-consumer-groups", "--validate-regex", "orders.*").out == (
        "The regular expression `orders.*` is valid.\n"
    )
    assert run("kafka-consumer-groups.sh", "--validate-regex", "(a") == (
        "The regular expression `(a` is invalid: missing closing ).\n",
        "",
        0,
    )


def test_kafka_groups_lists_types_and_protocols(
    kafka: Kafka, broker: PenstockBroker, group: str, topic: str
) -> None:
    with member(broker.bootstrap, f"m-{topic}", [topic]):
        listed = kafka("groups", "--list").out
        assert cells(listed)[0] == ["GROUP", "TYPE", "PROTOCOL"]
        assert [group, "Classic"] in cells(listed)
        assert [f"m-{topic}", "Classic", "consumer"] in cells(listed)
        only = cells(kafka("groups", "--list", "--group-type", "classic", "--protocol", "consumer").out)
        assert [group, "Classic"] not in only
        assert [group, "Classic"] in cells(kafka("groups", "--list", "--consumer").out)
        assert cells(kafka("groups", "--list", "--share").out) == [["GROUP", "TYPE", "PROTOCOL"]]
