"""kafka-verifiable-producer and kafka-verifiable-consumer: every line is an event."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.cli.conftest import BIN
from tests.cli.group_members import create_topic, produce

Run = Callable[..., Any]
Event = dict[str, Any]

DEADLINE_S = 60
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


@pytest.fixture
def topic(broker: PenstockBroker, topic_name: str) -> str:
    create_topic(broker.bootstrap, topic_name)
    return topic_name


def events(text: str) -> list[Event]:
    """Each begins with the time, in milliseconds, and its name."""
    found = []
    for line in text.splitlines():
        event = json.loads(line)
        assert list(event)[:2] == ["timestamp", "name"]
        assert event.pop("timestamp") > 1_600_000_000_000
        found.append(event)
    return found


def names(found: list[Event]) -> list[str]:
    return [event["name"] for event in found]


@contextmanager
def running(broker: PenstockBroker, tool: str, *words: str) -> Iterator["subprocess.Popen[str]"]:
    command = [str(BIN / f"kafka-{tool}"), "--bootstrap-server", broker.bootstrap, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(process: "subprocess.Popen[str]", name: str) -> Event:
    assert process.stdout is not None
    for line in process.stdout:
        event: Event = json.loads(line)
        if event["name"] == name:
            return event
    raise AssertionError(f"there was no {name}")


def test_each_record_is_told_with_its_offset(kafka: Run, topic: str) -> None:
    done = kafka("verifiable-producer", "--topic", topic, "--max-messages", "3")
    *told, last = events(done.out)
    success = {"name": "producer_send_success", "key": None, "topic": topic, "partition": 0}
    assert told == [
        {"name": "startup_complete"},
        *({**success, "value": str(number), "offset": number} for number in range(3)),
        {"name": "shutdown_complete"},
    ]
    throughput = last.pop("avg_throughput")
    assert throughput > 0
    assert last == {"name": "tool_data", "sent": 3, "acked": 3, "target_throughput": -1}
    assert (done.err, done.code) == ("", 0)


def test_events_are_as_compact_as_kafka_s(kafka: Run, topic: str) -> None:
    first = kafka("verifiable-producer", "--topic", topic, "--max-messages", "1").out.splitlines()[1]
    time = json.loads(first)["timestamp"]
    assert first == (
        f'{{"timestamp":{time},"name":"producer_send_success","key":null,"value":"0","offset":0,"topic":"{topic}",'
        '"partition":0}'
    )


def test_keys_prefixes_and_times_are_as_asked(kafka: Run, topic: str) -> None:
    done = kafka(
        "verifiable-producer", "--topic", topic, "--max-messages", "5", "--repeating-keys", "2", "--value-prefix", "7",
        "--message-create-time", "1700000000000", "--throughput", "500", "--acks", "1",
    )  # fmt: skip
    found = events(done.out)
    sent = {event["value"]: event["key"] for event in found if event["name"] == "producer_send_success"}
    assert sent == {"7.0": "0", "7.1": "1", "7.2": "0", "7.3": "1", "7.4": "0"}
    assert found[-1]["target_throughput"] == 500
    shown = kafka(
        "console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "5",
        "--formatter-property", "print.timestamp=true",
    )  # fmt: skip
    times = [int(line.split("\t")[0].removeprefix("CreateTime:")) for line in shown.out.splitlines()]
    assert times == sorted(times)
    assert 1_700_000_000_000 <= times[0] < 1_700_000_060_000


def test_a_record_without_acknowledgement_has_no_offset(kafka: Run, topic: str) -> None:
    found = events(kafka("verifiable-producer", "--topic", topic, "--max-messages", "1", "--acks", "0").out)
    assert found[1]["name"] == "producer_send_success"
    assert found[1]["offset"] == -1


def test_a_refused_record_is_an_event_and_ends_with_one(kafka: Run, topic: str) -> None:
    words = ("--entity-type", "topics", "--entity-name", topic, "--add-config", "max.message.bytes=10")
    assert kafka("configs", "--alter", *words).code == 0
    done = kafka("verifiable-producer", "--topic", topic, "--max-messages", "1")
    _, failed, complete, data = events(done.out)
    assert failed == {
        "name": "producer_send_error",
        "topic": topic,
        "key": None,
        "value": "0",
        "exception": "class org.apache.kafka.common.errors.RecordTooLargeException",
        "message": "The request included a message larger than the max message size the server will accept.",
    }
    assert complete == {"name": "shutdown_complete"}
    assert (data["sent"], data["acked"], done.err, done.code) == (1, 0, "", 1)


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_ends_the_producer_in_order(
    broker: PenstockBroker, topic: str, number: signal.Signals, code: int
) -> None:
    with running(broker, "verifiable-producer", "--topic", topic, "--throughput", "50") as process:
        wait_for(process, "producer_send_success")
        process.send_signal(number)
        out, err = process.communicate(timeout=DEADLINE_S)
    found = events(out)
    assert names(found)[-2:] == ["shutdown_complete", "tool_data"]
    assert found[-1]["sent"] == found[-1]["acked"] > 0
    assert (err, process.returncode) == ("", code)


def test_all_that_happens_to_a_member_is_told(kafka: Run, broker: PenstockBroker, topic: str) -> None:
    produce(broker.bootstrap, topic, [4])
    done = kafka(
        "verifiable-consumer", "--topic", topic, "--group-id", topic, "--max-messages", "2", "--verbose"
    )
    found = events(done.out)
    partitions = [{"topic": topic, "partition": 0}]
    assert found[:2] == [
        {"name": "startup_complete"},
        {"name": "partitions_assigned", "partitions": partitions},
    ]
    records = [event for event in found if event["name"] == "record_data"]
    assert records == [
        {
            "name": "record_data",
            "key": None,
            "value": f"0-{number}",
            "topic": topic,
            "partition": 0,
            "offset": number,
        }
        for number in range(2)
    ]
    consumed = [event for event in found if event["name"] == "records_consumed"]
    assert sum(event["count"] for event in consumed) == 2
    (last,) = consumed[-1]["partitions"]
    assert (last["topic"], last["partition"], last["maxOffset"]) == (topic, 0, 1)
    assert last["maxOffset"] - last["minOffset"] + 1 == last["count"]
    committed = [event for event in found if event["name"] == "offsets_committed"]
    assert committed[-1] == {
        "name": "offsets_committed",
        "offsets": [{"topic": topic, "partition": 0, "offset": 2}],
        "success": True,
    }
    assert found[-3:] == [
        {"name": "partitions_revoked", "partitions": partitions},
        {"name": "shutdown_complete"},
        {"name": "shutdown_requested"},
    ]
    assert (done.err, done.code) == ("", 0)


def test_a_member_goes_on_where_the_group_was(kafka: Run, broker: PenstockBroker, topic: str) -> None:
    produce(broker.bootstrap, topic, [3])
    words = ("--topic", topic, "--group-id", topic, "--verbose")
    kafka("verifiable-consumer", *words, "--max-messages", "2")
    found = events(kafka("verifiable-consumer", *words, "--max-messages", "1").out)
    assert [event["offset"] for event in found if event["name"] == "record_data"] == [2]


@pytest.mark.parametrize(
    "words",
    [
        ("--group-protocol", "consumer", "--group-remote-assignor", "range"),
        ("--group-instance-id", "one", "--session-timeout", "10000"),
        ("--assignment-strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"),
        ("--enable-autocommit",),
    ],
    ids=lambda words: words[0],
)
def test_a_member_is_one_in_every_way_of_being_one(
    kafka: Run, broker: PenstockBroker, topic: str, words: tuple[str, ...]
) -> None:
    produce(broker.bootstrap, topic, [5])
    done = kafka("verifiable-consumer", "--topic", topic, "--group-id", topic, "--max-messages", "5", *words)
    found = events(done.out)
    assert sum(event["count"] for event in found if event["name"] == "records_consumed") == 5
    assert ("offsets_committed" in names(found)) == ("--enable-autocommit" not in words)
    assert (done.err, done.code) == ("", 0)
    described = kafka("consumer-groups", "--describe", "--group", topic).out
    assert [line.split()[3] for line in described.splitlines() if topic in line.split()] == ["5"]


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_ends_the_member_in_order(
    broker: PenstockBroker, topic: str, number: signal.Signals, code: int
) -> None:
    with running(broker, "verifiable-consumer", "--topic", topic, "--group-id", topic) as process:
        wait_for(process, "partitions_assigned")
        process.send_signal(number)
        out, err = process.communicate(timeout=DEADLINE_S)
    assert names(events(out)) == ["shutdown_requested", "partitions_revoked", "shutdown_complete"]
    assert (err, process.returncode) == ("", code)


def test_without_an_offset_and_a_policy_a_member_ends(kafka: Run, broker: PenstockBroker, topic: str) -> None:
    produce(broker.bootstrap, topic, [1])
    done = kafka("verifiable-consumer", "--topic", topic, "--group-id", topic, "--reset-policy", "none")
    assert done.err.startswith("kafka-verifiable-consumer: the group has no offset to begin with")
    assert done.err.count("\n") == 1
    assert done.code == 1
    assert "shutdown_complete" in names(events(done.out))


@pytest.mark.parametrize(
    ("tool", "words", "reason"),
    [
        ("producer", ["--max-messages", "x"], "Cannot parse argument 'x' of option max-messages"),
        ("producer", ["--acks", "2"], "argument --acks: invalid choice: '2' (choose from {0,1,-1})"),
        ("producer", ["--repeating-keys", "0"], "--repeating-keys must be greater than 0."),
        ("producer", ["--command-config", "/no"], "kafka-verifiable-producer: cannot read /no: no such file or directory"),
        ("consumer", ["--max-messages", "x"], "Cannot parse argument 'x' of option max-messages"),
        ("consumer", ["--session-timeout", "x"], "Cannot parse argument 'x' of option session-timeout"),
        (
            "consumer",
            ["--reset-policy", "newest"],
            "argument --reset-policy: invalid choice: 'newest' (choose from {earliest,latest,none})",
        ),
        (
            "consumer",
            ["--group-protocol", "new"],
            "argument --group-protocol: invalid choice: 'new' (choose from {classic,consumer})",
        ),
    ],
)  # fmt: skip
def test_a_wrong_value_is_one_line(run: Run, tool: str, words: list[str], reason: str) -> None:
    group = ["--group-id", "g"] if tool == "consumer" else []
    done = run(
        f"kafka-verifiable-{tool}", "--bootstrap-server", "localhost:1", "--topic", "t", *group, *words
    )
    assert done == ("", f"{reason}\n", 1)


@pytest.mark.parametrize(
    ("tool", "words", "missing"),
    [
        ("producer", [], "topic"),
        ("producer", ["--topic", "t"], "bootstrap-server"),
        ("consumer", ["--topic", "t"], "group-id"),
    ],
)
def test_what_is_missing_is_named_above_the_help(run: Run, tool: str, words: list[str], missing: str) -> None:
    done = run(f"kafka-verifiable-{tool}", "--max-messages", "1", *words)
    assert done.err.startswith(f'Missing required argument "[{missing}]"\n')
    assert "Examples:" in done.err
    assert done.code == 1


def test_properties_come_from_a_file_also_by_its_older_name(kafka: Run, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id=somebody\nwhat.is.this=1\n")
    for option in ("--command-config", "--producer.config"):
        done = kafka("verifiable-producer", "--topic", topic, "--max-messages", "1", option, str(file))
        assert done.err == "WARN: there are no such client properties: what.is.this\n"
        assert done.code == 0
    assert done.out.splitlines()[0] == (
        "Option --producer.config has been deprecated and will be removed in a future version. "
        "Use --command-config instead."
    )
