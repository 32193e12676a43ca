import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.cli.conftest import run_command

Kafka = Callable[..., Any]
BIN = Path(__file__).parents[2] / "bin"
DEADLINE_S = 60
# librdkafka takes half a second to become idempotent, as it does for acks=all.
QUICKLY = ("--request-required-acks", "1")


@pytest.fixture
def topic(kafka: Kafka, topic_name: str) -> str:
    assert kafka("topics", "--create", "--topic", topic_name, "--partitions", "1").code == 0
    return topic_name


def consume(kafka: Kafka, topic: str, count: int, *words: str) -> str:
    done = kafka(
        "console-consumer",
        "--topic",
        topic,
        "--from-beginning",
        "--max-messages",
        str(count),
        "--timeout-ms",
        "15000",
        *words,
    )
    assert done.err == f"Processed a total of {count} messages\n"
    assert done.code == 0
    return str(done.out)


def test_lines_go_in_and_come_out(kafka: Kafka, topic: str) -> None:
    assert kafka("console-producer", "--topic", topic, stdin="one\ntwo\n\nfour") == ("", "", 0)
    assert consume(kafka, topic, 4) == "one\ntwo\n\nfour\n"


def test_keys_headers_and_nulls_are_parsed_and_printed(kafka: Kafka, topic: str) -> None:
    read = [
        f"--reader-property={pair}" for pair in ("parse.key=true", "parse.headers=true", "null.marker=NULL")
    ]
    lines = "h1:v1,h2:v2\tk1\tv1\nh1:NULL\tk2\tNULL\nNULL\tNULL\tv3\n"
    assert kafka("console-producer", "--topic", topic, *read, *QUICKLY, stdin=lines).code == 0
    columns = ("timestamp", "partition", "offset", "epoch", "headers", "key")
    shown = consume(kafka, topic, 3, *(f"--formatter-property=print.{column}=true" for column in columns))
    assert re.sub(r"CreateTime:\d{13}", "CreateTime:T", shown) == (
        "CreateTime:T\tPartition:0\tOffset:0\tEpoch:NOT_PRESENT\th1:v1,h2:v2\tk1\tv1\n"
        "CreateTime:T\tPartition:0\tOffset:1\tEpoch:NOT_PRESENT\th1:null\tk2\tnull\n"
        "CreateTime:T\tPartition:0\tOffset:2\tEpoch:NOT_PRESENT\tNO_HEADERS\tnull\tv3\n"
    )


def test_old_spellings_work_with_kafka_s_warnings(
    kafka: Kafka, broker: PenstockBroker, run: Kafka, topic: str
) -> None:
    produced = run(
        "kafka-console-producer.sh", "--broker-list", broker.bootstrap, "--topic", topic, "--producer-property", "acks=all",
        "--property", "parse.key=true", "--property", "key.separator=,", stdin="k,v\n",
    )  # fmt: skip
    assert produced.out == (
        "Warning: --property is deprecated and will be removed in a future version. Use --reader-property instead.\n"
        "Warning: --producer-property is deprecated and will be removed in a future version. "
        "Use --command-property instead.\n"
    )
    assert (produced.err, produced.code) == ("", 0)
    shown = consume(
        kafka, topic, 1, "--property", "print.key=true", "--property", "key.separator=,",
        "--consumer-property", "auto.offset.reset=earliest",
    )  # fmt: skip
    assert shown == (
        "Option --consumer-property is deprecated and will be removed in a future version. "
        "Use --command-property instead.\n"
        "Option --property is deprecated and will be removed in a future version. Use --formatter-property instead.\n"
        "k,v\n"
    )


def test_a_line_without_its_key_ends_the_producer_after_what_came_before(kafka: Kafka, topic: str) -> None:
    done = kafka(
        "console-producer", "--topic", topic, "--reader-property", "parse.key=true", stdin="k\tv\nbad\n"
    )
    assert (
        done.err == "org.apache.kafka.common.KafkaException: No key separator found on line number 2: 'bad'\n"
    )
    assert done.code == 1
    assert consume(kafka, topic, 1) == "v\n"


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec_can_be_asked_for(kafka: Kafka, topic: str, codec: str) -> None:
    words = ("--compression-codec", codec, "--sync", *QUICKLY)
    assert kafka("console-producer", "--topic", topic, *words, stdin="x\n").code == 0
    assert consume(kafka, topic, 1, "--partition", "0") == "x\n"


def test_a_record_that_is_too_large_is_reported_and_the_exit_code_says_so(kafka: Kafka, topic: str) -> None:
    done = kafka("console-producer", "--topic", topic, *QUICKLY, stdin="a" * 2_000_000)
    assert done.err.startswith(
        f"ERROR Error when sending message to topic {topic} with key: null, value: 2000000 bytes"
    )
    assert done.err.count("\n") == 1
    assert done.code == 1


def test_a_partition_is_read_from_an_offset(kafka: Kafka, topic: str) -> None:
    kafka("console-producer", "--topic", topic, *QUICKLY, stdin="0\n1\n2\n3\n")
    done = kafka(
        "console-consumer", "--topic", topic, "--partition", "0", "--offset", "2", "--max-messages", "2"
    )
    assert done == ("2\n3\n", "Processed a total of 2 messages\n", 0)


def test_a_group_goes_on_where_it_left_off(kafka: Kafka, topic: str) -> None:
    kafka("console-producer", "--topic", topic, *QUICKLY, stdin="1\n2\n3\n")
    assert consume(kafka, topic, 2, "--group", topic) == "1\n2\n"
    assert consume(kafka, topic, 1, "--group", topic) == "3\n"


def test_topics_are_chosen_by_pattern(kafka: Kafka, topic: str) -> None:
    kafka("console-producer", "--topic", topic, *QUICKLY, stdin="x\n")
    done = kafka(
        "console-consumer",
        "--include",
        f"{topic[:-1]}.",
        "--from-beginning",
        "--max-messages",
        "1",
        "--timeout-ms",
        "15000",
    )
    assert done == ("x\n", "Processed a total of 1 messages\n", 0)


def test_silence_ends_the_consumer_when_it_was_told_so(kafka: Kafka, topic: str) -> None:
    done = kafka("console-consumer", "--topic", topic, "--partition", "0", "--timeout-ms", "300")
    assert done == ("", "Processed a total of 0 messages\n", 0)


def test_numbers_are_deserialized_as_java_prints_them(kafka: Kafka, topic: str) -> None:
    kafka("console-producer", "--topic", topic, *QUICKLY, stdin=b"\0\0\0\x07\n")
    shown = consume(
        kafka, topic, 1, "--value-deserializer", "org.apache.kafka.common.serialization.IntegerDeserializer"
    )
    assert shown == "7\n"


def test_a_value_of_the_wrong_size_ends_the_consumer(kafka: Kafka, topic: str) -> None:
    kafka("console-producer", "--topic", topic, *QUICKLY, stdin="x\n")
    done = kafka(
        "console-consumer", "--topic", topic, "--from-beginning", "--value-deserializer", "LongDeserializer",
    )  # fmt: skip
    assert done == (
        "",
        "ERROR Size of data received by LongDeserializer is not 8\nProcessed a total of 1 messages\n",
        1,
    )


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "Exactly one of the following arguments is required: [topic], [include]"),
        (["--topic", "t", "--offset", "3"], "The partition is required when offset is specified."),
        (
            ["--topic", "t", "--partition", "0", "--offset", "x"],
            "The provided offset value 'x' is incorrect.",
        ),
        (
            ["--topic", "t", "--partition", "0", "--group", "g"],
            "Options group and partition cannot be specified together.",
        ),
        (["--topic", "t", "--formatter", "org.Foo"], "org.Foo"),
    ],
)
def test_a_consumer_that_was_asked_wrongly_explains_it_above_the_help(
    run: Kafka, words: list[str], reason: str
) -> None:
    done = run("kafka-console-consumer", "--bootstrap-server", "localhost:1", *words)
    assert done.err.startswith(reason)
    assert "Examples:" in done.err
    assert (done.out, done.code) == ("", 1)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_consumer_with_its_count(
    kafka: Kafka, broker: PenstockBroker, topic: str, number: signal.Signals, code: int
) -> None:
    kafka("console-producer", "--topic", topic, *QUICKLY, stdin="x\n")
    words = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--partition", "0", "--from-beginning"]
    with subprocess.Popen(
        [str(BIN / "kafka-console-consumer"), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"x\n"
        process.send_signal(number)
        _, err = process.communicate(timeout=DEADLINE_S)
    assert err == b"Processed a total of 1 messages\n"
    assert process.returncode == code


def test_a_record_with_a_wrong_crc_ends_the_consumers(
    broker: PenstockBroker, kafka: Kafka, topic: str
) -> None:
    for line in ("sound", "damaged"):
        assert kafka("console-producer", "--topic", topic, *QUICKLY, stdin=line).code == 0
    log = broker.data_dir / f"{topic}-0" / f"{0:020d}.log"
    with log.open("r+b") as file:
        file.seek(-3, os.SEEK_END)
        file.write(b"?")
    words = ("--topic", topic, "--from-beginning", "--timeout-ms", "15000")
    shown = kafka("console-consumer", *words)
    assert (shown.out, shown.code) == ("sound\n", 1)
    assert "CRC32C" in shown.err
    own = run_command("penstock", "consume", topic, "-b", broker.bootstrap, "--from-beginning", "--exit")
    assert (own.out, own.code) == ("sound\n", 1)
    assert "CRC32C" in own.err


def test_the_producer_prompts_on_a_terminal(kafka: Kafka, broker: PenstockBroker, topic: str) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        tool = str(BIN / "kafka-console-producer")
        os.execv(tool, [tool, "--bootstrap-server", broker.bootstrap, "--topic", topic])
    shown = b""
    deadline_s = time.monotonic() + DEADLINE_S

    def wait_for(wanted: bytes) -> None:
        nonlocal shown
        while wanted not in shown:
            assert time.monotonic() < deadline_s, shown
            if select.select([terminal], [], [], 0.1)[0]:
                shown += os.read(terminal, 4096)

    wait_for(b">")
    os.write(terminal, b"hello\n")
    wait_for(b"hello\r\n>")
    os.write(terminal, b"\x04")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0
    assert consume(kafka, topic, 1) == "hello\n"


def end_offset(kafka: Kafka, topic: str) -> int:
    lines = kafka("get-offsets", "--topic", topic).out.splitlines()
    return sum(int(line.rpartition(":")[2]) for line in lines)


def await_records(kafka: Kafka, topic: str, count: int) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while end_offset(kafka, topic) < count:
        assert time.monotonic() < deadline_s


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_producer_when_all_that_was_read_is_acknowledged(
    kafka: Kafka, broker: PenstockBroker, topic: str, number: signal.Signals, code: int
) -> None:
    words = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--timeout", "0"]
    with subprocess.Popen(
        [str(BIN / "kafka-console-producer"), *words], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"".join(b"%d\n" % value for value in range(10)))
        process.stdin.flush()
        await_records(kafka, topic, 10)
        process.send_signal(number)  # while it waits for the next line
        assert process.wait(DEADLINE_S) == code
        assert process.stderr.read() == b""


def test_a_signal_while_records_are_acknowledged_ends_the_producer_in_order(
    kafka: Kafka, broker: PenstockBroker, topic: str, tmp_path: Path
) -> None:
    """It became a SystemError where it came in a callback of librdkafka."""
    many = 200_000
    lines = tmp_path / "lines"
    lines.write_text("".join(f"{number}\n" for number in range(many)))
    words = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--sync", "--timeout", "0"]
    with (
        lines.open("rb") as stdin,
        subprocess.Popen(
            [str(BIN / "kafka-console-producer"), *words], stdin=stdin, stderr=subprocess.PIPE
        ) as process,
    ):
        await_records(kafka, topic, 1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE_S)
    assert err == b""
    assert process.returncode == 130
    assert 1 <= end_offset(kafka, topic) < many
