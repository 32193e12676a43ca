import json
import os
import pty
import select
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from penstock.admin.groups.lag import progress
from penstock.admin.groups.model import Description
from penstock.admin.groups.requests import open_groups
from penstock.admin.offsets import EARLIEST, LATEST
from penstock.client.clients import Connection
from penstock.client.errors import Refused
from penstock.model.ids import TopicPartition
from penstock.testing.penstock_broker import PenstockBroker
from tests.cli.conftest import BIN
from tests.cli.group_members import commit, create_topic, member, produce

Run = Callable[..., Any]


@pytest.fixture
def topic(broker: PenstockBroker, topic_name: str) -> str:
    create_topic(broker.bootstrap, topic_name, partitions=2)
    produce(broker.bootstrap, topic_name, [5, 3])
    return topic_name


@pytest.fixture
def group(broker: PenstockBroker, topic: str) -> str:
    name = f"g-{topic}"
    commit(broker.bootstrap, name, topic, {0: 2, 1: 3})
    return name


def test_groups_are_listed(penstock: Run, group: str) -> None:
    assert [group, "Classic", "Empty"] in [
        line.split() for line in penstock("groups", "list").out.splitlines()
    ]
    listed = json.loads(penstock("groups", "list", "--state", "empty", "-o", "json").out)
    assert {"group": group, "type": "Classic", "state": "Empty", "protocol": ""} in listed
    stable = json.loads(penstock("groups", "list", "--state", "Stable", "-o", "json").out)
    assert group not in [one["group"] for one in stable]


def test_a_group_is_described_with_members_and_offsets(
    penstock: Run, broker: PenstockBroker, group: str, topic: str
) -> None:
    with member(broker.bootstrap, group, [topic], client_id="reader"):
        (described,) = json.loads(penstock("groups", "describe", group, "-o", "json").out)
        shown = penstock("groups", "describe", group).out
    assert described["state"] == "Stable"
    assert [one["client"] for one in described["members"]] == ["reader"]
    assert described["members"][0]["assignment"] == [[topic, 0], [topic, 1]]
    assert [one["lag"] for one in described["offsets"]] == [3, 0]
    assert shown.startswith(f"{group}  Stable, classic, range, coordinator 1 at {broker.bootstrap}\n")
    assert f"{topic}:0,1" in shown


def test_lag_is_shown_by_topic_and_by_partition(penstock: Run, group: str, topic: str) -> None:
    (one,) = json.loads(penstock("groups", "lag", group, "-o", "json").out)
    assert one == {
        "group": group, "topic": topic, "partitions": 2, "members": 0, "state": "Empty", "lag": 3,
    }  # fmt: skip
    by_partition = json.loads(penstock("groups", "lag", group, "-p", "-o", "json").out)
    assert [(row["partition"], row["committed"], row["end_offset"], row["lag"]) for row in by_partition] == [
        (0, 2, 5, 3),
        (1, 3, 3, 0),
    ]
    assert [group, topic, "2", "0", "Empty", "3"] in [
        line.split() for line in penstock("groups", "lag").out.splitlines()
    ]


def test_watching_shows_each_look_with_the_pace(penstock: Run, group: str, topic: str) -> None:
    words = ("groups", "lag", group, "--watch", "--every", "0.1", "--times", "2")
    looks = [json.loads(line) for line in penstock(*words, "-o", "json").out.splitlines()]
    assert [look[0]["lag"] for look in looks] == [3, 3]
    rows = [line.split() for line in penstock(*words).out.splitlines() if line.startswith(group)]
    assert [row[-1] for row in rows] == ["–", "0/s"]


def test_on_a_terminal_the_view_is_refreshed_in_place(broker: PenstockBroker, group: str) -> None:
    reader, writer = pty.openpty()
    words = ["groups", "lag", group, "--watch", "--every", "0.1", "--times", "3", "-b", broker.bootstrap]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    process = subprocess.Popen([str(BIN / "penstock"), *words], stdout=writer, env=environment)
    os.close(writer)
    shown = b""
    deadline_s = time.monotonic() + 20
    while time.monotonic() < deadline_s:
        if not select.select([reader], [], [], 1.0)[0]:
            continue
        try:
            chunk = os.read(reader, 65536)
        except OSError:  # the other side is closed
            break
        shown += chunk
        if not chunk:
            break
    os.close(reader)
    assert process.wait(10) == 0
    assert shown.count(b"Ctrl-C ends") >= 3
    assert b"\x1b[" in shown
    assert group.encode() in shown


def test_a_group_is_sent_to_the_beginning(penstock: Run, group: str, topic: str) -> None:
    dry = penstock("groups", "reset", group, "--topic", topic, "--to", "earliest", "--dry-run", "-o", "json")
    assert [(one["before"], one["offset"]) for one in json.loads(dry.out)] == [(2, 0), (3, 0)]
    done = penstock("groups", "reset", group, "--topic", f"{topic}:0", "--to", "earliest")
    assert (done.err, done.code) == (f"✓ {group} goes on at the new offsets\n", 0)
    (one,) = json.loads(penstock("groups", "lag", group, "-o", "json").out)
    assert one["lag"] == 5


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--to", "latest"], [5, 3]),
        (["--to", "1"], [1, 1]),
        (["--shift", "-1"], [1, 2]),
        (["--to-time", "1h"], [0, 0]),
        (["--to-time", "2099-01-01"], [5, 3]),
    ],
)
def test_every_way_of_reset(penstock: Run, group: str, words: list[str], expected: list[int]) -> None:
    done = penstock("groups", "reset", group, "--all-topics", *words, "--dry-run", "-o", "json")
    assert [one["offset"] for one in json.loads(done.out)] == expected


def test_a_group_with_members_is_left_alone(
    penstock: Run, broker: PenstockBroker, group: str, topic: str
) -> None:
    with member(broker.bootstrap, group, [topic]):
        reset = penstock("groups", "reset", group, "--all-topics", "--to", "latest")
        deleted = penstock("groups", "delete", group)
        offsets = penstock("groups", "delete-offsets", group, "--topic", topic)
    assert reset.err == (f"penstock: {group} has 1 members and is Stable: stop them first, then reset it.\n")
    assert deleted.err == f"penstock: {group} was not deleted: it has members. Stop them first.\n"
    assert offsets.err == (
        f"penstock: the offsets of {group} were not deleted: its members read that topic. Stop them first.\n"
    )
    assert (reset.code, deleted.code, offsets.code) == (1, 1, 1)


def test_a_group_and_its_offsets_are_deleted(penstock: Run, group: str, topic: str) -> None:
    done = penstock("groups", "delete-offsets", group, "--topic", f"{topic}:1")
    assert done == ("", f"✓ {group} has no offsets of {topic}:1 any more\n", 0)
    (one,) = json.loads(penstock("groups", "lag", group, "-o", "json").out)
    assert one["partitions"] == 1
    assert penstock("groups", "delete", group) == ("", f"✓ deleted {group}\n", 0)


def test_a_group_that_is_not_there_gets_a_hint(penstock: Run, group: str) -> None:
    for verb in ("describe", "lag", "delete"):
        done = penstock("groups", verb, group + "x")
        assert done == ("", f"penstock: there is no group '{group}x'. Did you mean '{group}'?\n", 1)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--to", "earliest"], "Say which topics: --topic TOPIC, or --all-topics."),
        (["--all-topics"], "Say where to, in one way: --to, --to-time or --shift."),
        (["--all-topics", "--to", "x"], "'x' is not earliest, latest, current or an offset."),
    ],
)
def test_a_reset_that_says_too_little_is_code_2(run: Run, words: list[str], reason: str) -> None:
    done = run("penstock", "groups", "reset", "g", *words)
    assert done.err.splitlines()[-1] == f"Error: {reason}"
    assert done.code == 2


def test_group_names_are_completed_from_the_broker(broker: PenstockBroker, group: str) -> None:
    environment = {
        **os.environ,
        "_PENSTOCK_COMPLETE": "bash_complete",
        "COMP_WORDS": f"penstock groups lag {group[:-1]}",
        "COMP_CWORD": "3",
        "PENSTOCK_BOOTSTRAP": broker.bootstrap,
    }
    done = subprocess.run(
        [str(BIN / "penstock")], env=environment, capture_output=True, text=True, check=False
    )
    assert f"plain,{group}" in done.stdout.splitlines()


def test_groups_as_a_library(broker: PenstockBroker, group: str, topic: str) -> None:
    with open_groups(Connection(broker.bootstrap), timeout_s=10) as groups:
        partitions = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
        assert group in [one.group_id for one in groups.listing(states=["Empty"], types=["Classic"])]
        assert group not in [one.group_id for one in groups.listing(states=["Stable"])]
        described = groups.describe([group, "nope"])
        missing, found = described["nope"], described[group]
        assert isinstance(missing, Refused)
        assert str(missing) == "Group nope not found."
        assert isinstance(found, Description)
        assert [(row.partition, row.lag) for row in progress(groups, found)] == [
            (partitions[0], 3),
            (partitions[1], 0),
        ]
        assert groups.partitions([topic, "nope"]) == {topic: [0, 1]}
        assert groups.log_offsets(partitions, LATEST) == {partitions[0]: 5, partitions[1]: 3}
        assert groups.log_offsets(partitions, EARLIEST) == dict.fromkeys(partitions, 0)
        groups.commit(group, {partitions[0]: 4})
        assert groups.committed(group)[partitions[0]].offset == 4
        with member(broker.bootstrap, group, [topic], client_id="me"):
            active = groups.describe([group])[group]
            assert isinstance(active, Description)
            assert [(one.client_id, one.assignment) for one in active.members] == [("me", partitions)]
        assert groups.delete([group, "nope"])[group] is None
