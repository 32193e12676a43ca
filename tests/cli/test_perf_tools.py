"""kafka-producer-perf-test, kafka-consumer-perf-test and kafka-e2e-latency. Nothing here asks how fast anything is."""

import re
import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.cli.conftest import BIN
from tests.cli.group_members import create_topic, produce

Run = Callable[..., Any]

WINDOW = re.compile(
    r"(\d+) records sent, \d+\.\d records/sec \(\d+\.\d\d MB/sec\), \d+\.\d ms avg latency, \d+\.\d ms max latency\."
)
SUMMARY = re.compile(
    r"(\d+)( steady state)? records sent, (\d+\.\d{6}) records/sec \((\d+\.\d\d) MB/sec\), (\d+\.\d\d) ms avg latency, "
    r"(\d+\.\d\d) ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99.9th\."
)
CONSUMER_HEADER = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, "
    "fetch.nMsg.sec"
)
# librdkafka takes half a second to become idempotent, as it does for acks=all.
QUICKLY = ("--command-property", "acks=1")
MEGABYTE = 1024 * 1024
DEADLINE_S = 60


@pytest.fixture
def topic(broker: PenstockBroker, topic_name: str) -> str:
    create_topic(broker.bootstrap, topic_name, partitions=2)
    return topic_name


def perf(kafka: Run, topic: str, records: int, *words: str) -> Any:
    return kafka(
        "producer-perf-test", "--topic", topic, "--num-records", str(records), "--throughput", "-1", *words
    )


def values(kafka: Run, topic: str, count: int, *words: str) -> list[str]:
    done = kafka(
        "console-consumer", "--topic", topic, "--from-beginning", "--max-messages", str(count),
        "--timeout-ms", "30000", *words,
    )  # fmt: skip
    assert done.err == f"Processed a total of {count} messages\n"
    return sorted(done.out.splitlines())


def end_offsets(kafka: Run, topic: str) -> int:
    lines = kafka("get-offsets", "--topic", topic).out.splitlines()
    return sum(int(line.rpartition(":")[2]) for line in lines)


def test_records_of_a_size_are_sent_and_summed_up(kafka: Run, topic: str) -> None:
    done = perf(kafka, topic, 300, "--record-size", "100")
    summary = SUMMARY.fullmatch(done.out.rstrip("\n"))
    assert summary is not None, done
    assert (summary.group(1), summary.group(2), done.err, done.code) == ("300", None, "", 0)
    sent = values(kafka, topic, 300)
    assert all(re.fullmatch("[A-Z]{100}", value) for value in sent)
    assert len(set(sent)) == 300
    assert end_offsets(kafka, topic) == 300


def test_numbers_count_up_and_properties_follow_one_option(
    run: Run, kafka: Run, broker: PenstockBroker, topic: str
) -> None:
    done = run(
        "kafka-producer-perf-test", "--topic", topic, "--num-records", "12", "--throughput", "-1",
        "--payload-monotonic", "--producer-props", "acks=1", f"bootstrap.servers={broker.bootstrap}",
    )  # fmt: skip
    warning, summary = done.out.splitlines()
    assert warning == (
        "Option --producer-props has been deprecated and will be removed in a future version. "
        "Use --command-property instead."
    )
    assert SUMMARY.fullmatch(summary)
    assert done.code == 0
    assert values(kafka, topic, 12) == sorted(map(str, range(12)))


def test_records_are_pieces_of_a_file(kafka: Run, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "payloads"
    file.write_text("one;two;;three;;")
    words = ("--payload-file", str(file), "--payload-delimiter", ";+", *QUICKLY)
    first, second, _ = perf(kafka, topic, 40, *words).out.splitlines()
    assert (first, second) == (f"Reading payloads from: {file}", "Number of records read: 3")
    assert set(values(kafka, topic, 40)) == {"one", "two", "three"}


def test_transactions_are_committed(kafka: Run, topic: str) -> None:
    words = ("--payload-monotonic", "--transactional-id", topic, "--transaction-duration-ms", "1")
    count = 20_000
    assert perf(kafka, topic, count, *words).code == 0
    assert values(kafka, topic, count, "--isolation-level", "read_committed") == sorted(
        map(str, range(count))
    )
    # So many records cannot be sent within a millisecond: there is more than one transaction, each with a marker.
    assert end_offsets(kafka, topic) > count + 2
    states = [line.split() for line in kafka("transactions", "list").out.splitlines()]
    assert [row[3] for row in states if row[0] == topic] == ["CompleteCommit"]


def test_a_warmup_is_told_apart(kafka: Run, topic: str) -> None:
    done = perf(kafka, topic, 50, "--record-size", "10", "--warmup-records", "20", *QUICKLY)
    told, whole, steady = done.out.splitlines()
    assert told == "Warmup first 20 records. Steady state results will print after the complete test summary."
    found = [SUMMARY.fullmatch(line) for line in (whole, steady)]
    assert [one and one.group(1, 2) for one in found] == [("50", None), ("30", " steady state")]


def test_intervals_have_lines_and_metrics_follow(kafka: Run, topic: str) -> None:
    done = kafka(
        "producer-perf-test", "--topic", topic, "--num-records", "40", "--record-size", "10", "--throughput", "100",
        "--reporting-interval", "50", "--print-metrics", *QUICKLY,
    )  # fmt: skip
    lines = done.out.splitlines()
    end = next(number for number, line in enumerate(lines) if SUMMARY.fullmatch(line))
    windows = [WINDOW.fullmatch(line) for line in lines[:end]]
    assert windows
    assert all(windows)
    assert sum(int(window.group(1)) for window in windows if window) <= 40
    assert lines[end + 1] == ""
    assert re.fullmatch(r"Metric Name +Value", lines[end + 2])
    metrics = dict(re.split(" +: ", line) for line in lines[end + 3 :])
    assert metrics["txmsgs"] == "40.000"


def test_a_record_that_the_broker_refuses_ends_with_one(
    broker: PenstockBroker, kafka: Run, topic: str
) -> None:
    words = ("--entity-type", "topics", "--entity-name", topic, "--add-config", "max.message.bytes=100")
    assert kafka("configs", "--alter", *words).code == 0
    done = perf(kafka, topic, 3, "--record-size", "5000", *QUICKLY)
    assert done.err == (
        f"ERROR Error when sending message to topic {topic} with error: The request included a message larger than "
        "the max message size the server will accept.\n3 records were not acknowledged\n"
    )
    assert done.code == 1
    assert done.out.startswith("0 records sent, 0.000000 records/sec")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--num-records", "0"], "--num-records should be greater than zero."),
        (["--num-records", "many"], "Cannot parse argument 'many' of option num-records"),
        (["--record-size", "0"], "--record-size should be greater than zero."),
        (["--throughput", "fast"], "Cannot parse argument 'fast' of option throughput"),
        (["--throughput", "nan"], "Cannot parse argument 'nan' of option throughput"),
        (["--reporting-interval", "0"], "--reporting-interval should be greater than zero."),
        (["--transaction-duration-ms", "0"], "--transaction-duration-ms should be greater than zero."),
        (
            ["--warmup-records", "9"],
            "The value for --warmup-records must be strictly fewer than the number of records in the test, "
            "--num-records.",
        ),
        (["--command-property", "acks"], "kafka-producer-perf-test: Invalid property: acks"),
        (
            ["--record-size", "", "--payload-file", "/nowhere"],
            "kafka-producer-perf-test: cannot read /nowhere: no such file or directory",
        ),
    ],
)
def test_a_wrong_producer_test_is_one_line(run: Run, words: list[str], reason: str) -> None:
    options = {"--topic": "t", "--num-records": "9", "--throughput": "-1", "--record-size": "10"}
    options |= dict(zip(words[::2], words[1::2], strict=True))
    given = [word for pair in options.items() if pair[1] for word in pair]
    done = run("kafka-producer-perf-test", "--bootstrap-server", "localhost:1", *given)
    assert done.err == f"{reason}\n"
    assert done.code == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--num-records", "1"], 'Missing required argument "[topic]"'),
        (
            ["--topic", "t", "--num-records", "1", "--throughput", "1"],
            "exactly one of --record-size, --payload-file or --payload-monotonic is required",
        ),
        (["--topic", "t", "--num-records", "1", "--throughput", "1", "x"], "unrecognized arguments: 'x'"),
        (
            ["--topic", "t", "--num-records", "1", "--throughput", "1", "--payload-monotonic"],
            "At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or "
            "--command-config must be specified.",
        ),
    ],
)
def test_a_producer_test_that_lacks_something_explains_it(run: Run, words: list[str], reason: str) -> None:
    done = run("kafka-producer-perf-test", *words)
    assert done.err.startswith(f"{reason}\n")
    assert "Examples:" in done.err
    assert (done.out, done.code) == ("", 1)


def test_records_are_read_and_counted(kafka: Run, broker: PenstockBroker, topic: str) -> None:
    produce(broker.bootstrap, topic, [700, 300])
    done = kafka("consumer-perf-test", "--topic", topic, "--num-records", "1000")
    header, line = done.out.splitlines()
    assert header == f"start.time, end.time, {CONSUMER_HEADER}"
    columns = line.split(", ")
    time = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}"
    assert re.fullmatch(time, columns[0])
    assert re.fullmatch(time, columns[1])
    size = sum(len(f"0-{number}") for number in range(700)) + sum(len(f"1-{number}") for number in range(300))
    assert columns[2] == f"{size / MEGABYTE:.4f}"
    assert columns[4] == "1000"
    assert all(re.fullmatch(r"\d+\.\d{4}", columns[number]) for number in (3, 5, 8, 9))
    assert all(re.fullmatch(r"\d+", columns[number]) for number in (6, 7))
    assert (len(columns), done.err, done.code) == (10, "", 0)


def test_a_group_of_the_consumer_test_commits(kafka: Run, broker: PenstockBroker, topic: str) -> None:
    produce(broker.bootstrap, topic, [50])
    words = ("--topic", topic, "--group", topic, "--hide-header", "--date-format", "dd.MM.yy HH'h'")
    first = kafka("consumer-perf-test", *words, "--messages", "20")
    warning, line = first.out.splitlines()
    assert warning == "Warning: --messages is deprecated. Use --num-records instead."
    assert re.fullmatch(r"\d\d\.\d\d\.\d\d \d\dh", line.split(", ")[0])
    assert line.split(", ")[4] == "20"
    described = kafka("consumer-groups", "--describe", "--group", topic).out
    committed = [line.split()[3] for line in described.splitlines() if topic in line.split()]
    assert "20" in committed


def test_silence_ends_the_consumer_test_with_a_warning(kafka: Run, topic: str) -> None:
    words = ("--topic", topic, "--num-records", "5", "--timeout", "300", "--show-detailed-stats")
    done = kafka("consumer-perf-test", *words, "--reporting-interval", "100")
    header, *lines, warning = done.out.splitlines()
    assert header == f"time, threadId, {CONSUMER_HEADER}"
    assert lines
    assert all(line.split(", ")[1] == "0" for line in lines)
    assert warning == (
        "WARNING: Exiting before consuming the expected number of records: timeout (300 ms) exceeded. "
        "You can use the --timeout option to increase the timeout."
    )
    assert (done.err, done.code) == ("", 0)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--num-records", "x"], "Cannot parse argument 'x' of option num-records"),
        (["--reporting-interval", "0"], "Reporting interval must be greater than 0."),
        (["--timeout", "soon"], "Cannot parse argument 'soon' of option timeout"),
        (
            ["--date-format", "QQ"],
            "kafka-consumer-perf-test: --date-format has a letter that is not known here: Q in QQ",
        ),
    ],
)
def test_a_wrong_consumer_test_is_one_line(run: Run, words: list[str], reason: str) -> None:
    options = {"--topic": "t", "--num-records": "9", **dict([tuple(words)])}
    given = [word for pair in options.items() for word in pair]
    done = run("kafka-consumer-perf-test", "--bootstrap-server", "localhost:1", *given)
    assert done == ("", f"{reason}\n", 1)


@pytest.mark.parametrize("words", [(), ("--topic", "t", "--include", "t.*")])
def test_a_consumer_test_needs_a_topic_or_a_pattern(run: Run, words: tuple[str, ...]) -> None:
    done = run("kafka-consumer-perf-test", "--bootstrap-server", "localhost:1", "--num-records", "1", *words)
    reason = "Exactly one of the following arguments is required: [topic], [include]"
    assert done.err.startswith(f"{reason}\n")
    assert done.code == 1


def test_the_latency_from_end_to_end_is_told(kafka: Run, topic: str) -> None:
    done = kafka(
        "e2e-latency", "--topic", topic, "--num-records", "1001", "--producer-acks", "1", "--record-size", "20",
        "--record-key-size", "5", "--num-headers", "2", "--record-header-key-size", "3", "--record-header-size", "-1",
    )  # fmt: skip
    first, second, average, percentiles = done.out.splitlines()
    assert [line.partition("\t")[0] for line in (first, second)] == ["0", "1000"]
    assert float(first.partition("\t")[2]) > 0
    assert re.fullmatch(r"Avg latency: \d+\.\d{4} ms", average)
    assert re.fullmatch(r"Percentiles: 50th = \d+, 99th = \d+, 99.9th = \d+", percentiles)
    assert (done.err, done.code) == ("", 0)
    assert end_offsets(kafka, topic) == 1001


def test_the_older_form_makes_the_topic(run: Run, broker: PenstockBroker, topic_name: str) -> None:
    done = run("kafka-e2e-latency", broker.bootstrap, topic_name, "2", "all", "10")
    warning, made, first, _, _ = done.out.splitlines()
    assert warning.startswith("WARNING: Positional argument usage is deprecated")
    assert made == (
        f'Topic "{topic_name}" does not exist. Will create topic with 1 partition(s) and replication factor = 1'
    )
    assert first.startswith("0\t")
    assert (done.err, done.code) == ("", 0)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["localhost:1", "t", "0", "all", "1"], "Value for --num-records must be a positive integer."),
        (["localhost:1", "t", "1", "0", "1"], "Invalid value for --producer-acks."),
        (
            [
                "--bootstrap-server=localhost:1",
                "--topic=t",
                "--num-records=1",
                "--producer-acks=1",
                "--record-size=-1",
            ],
            "Value for --record-size must be a non-negative integer.",
        ),
        (["localhost:1", "t", "1", "all", "x"], "Cannot parse argument 'x' of option record-size"),
        (["localhost:1", "t", "1", "all", "1", "/no"], "kafka-e2e-latency: cannot read /no: no such file"),
        (
            ["localhost:1", "t"],
            "Invalid number of arguments. Expected 5 or 6 positional arguments, but got 2.",
        ),
        (["--topic", "t"], 'Missing required argument "[bootstrap-server]"'),
    ],
)
def test_a_wrong_latency_test_is_refused(run: Run, words: list[str], reason: str) -> None:
    done = run("kafka-e2e-latency", *words)
    assert done.err.startswith(reason)
    assert done.code == 1


def test_a_topic_that_can_be_none_is_refused_in_a_line(kafka: Run) -> None:
    words = ("--topic", "no/topic", "--num-records", "2", "--record-size", "1")
    sent = kafka("producer-perf-test", *words, "--throughput", "-1", *QUICKLY)
    assert sent.err == (
        "ERROR Error when sending message to topic no/topic with error: Invalid topic exception.\n"
        "2 records were not acknowledged\n"
    )
    assert sent.code == 1
    timed = kafka("e2e-latency", *words, "--producer-acks", "1")
    assert timed.err.startswith("Topic name is invalid: 'no/topic' contains")
    assert (timed.err.count("\n"), timed.code) == (1, 1)
    read = kafka("consumer-perf-test", *words[:4], "--timeout", "3000")
    assert read.err == "WARN Subscribed topic not available: no/topic: Broker: Unknown topic or partition\n"
    assert read.out.splitlines()[-1].split(", ")[4] == "0"


def test_an_interrupt_ends_the_producer_test_with_what_there_is(broker: PenstockBroker, topic: str) -> None:
    command = [
        str(BIN / "kafka-producer-perf-test"), "--bootstrap-server", broker.bootstrap, "--topic", topic,
        "--num-records", "100000", "--record-size", "1", "--throughput", "100", "--reporting-interval", "50", *QUICKLY,
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert WINDOW.fullmatch(process.stdout.readline().rstrip("\n"))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=DEADLINE_S)
    assert SUMMARY.fullmatch(out.splitlines()[-1])
    assert (err, process.returncode) == ("", 130)


@pytest.mark.parametrize(
    ("tool", "words", "last"),
    [
        ("e2e-latency", ("--record-size", "1", "--producer-acks", "1"), "Percentiles: "),
        ("consumer-perf-test", ("--timeout", "600000"), ""),
    ],
)
def test_a_signal_ends_the_other_tests_as_well(
    broker: PenstockBroker, topic: str, tool: str, words: tuple[str, ...], last: str
) -> None:
    command = [str(BIN / f"kafka-{tool}"), "--bootstrap-server", broker.bootstrap, "--topic", topic]
    command += ["--num-records", "100000000", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=DEADLINE_S)
    assert out.splitlines()[-1].startswith(last)
    assert (err, process.returncode) == ("", 143)


def test_a_topic_that_nobody_makes_is_told_long_before_the_records_are_too_old(
    run: Run, tmp_path: Path
) -> None:
    """librdkafka would wait half a minute for it."""
    nowhere = "This server does not host this topic-partition."
    commands = {
        "kafka-producer-perf-test": (
            "--num-records", "3", "--record-size", "9", "--throughput", "-1", *QUICKLY,
        ),
        "kafka-verifiable-producer": ("--max-messages", "3"),
        "kafka-console-producer": (),
        "kafka-consumer-perf-test": ("--num-records", "3", "--timeout", "7000"),
    }  # fmt: skip
    with (
        PenstockBroker(tmp_path, options={"auto.create.topics.enable": "false"}) as broker,
        ThreadPoolExecutor() as pool,
    ):
        at = ("--bootstrap-server", broker.bootstrap, "--topic", "nowhere")
        started = {tool: pool.submit(run, tool, *at, *words, stdin="x\n") for tool, words in commands.items()}
        done = {tool: future.result() for tool, future in started.items()}
    read = done.pop("kafka-consumer-perf-test")
    assert all(nowhere in one.out + one.err and one.code == 1 for one in done.values())
    assert "3 records were not acknowledged\n" in done["kafka-producer-perf-test"].err
    assert read.err == "WARN Subscribed topic not available: nowhere: Broker: Unknown topic or partition\n"
    assert "WARNING: Exiting before consuming the expected number of records" in read.out
