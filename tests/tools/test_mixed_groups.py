"""Groups of several clients, Java among them, as processes that are killed and stopped: no partition without a reader."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from penstock.testing.penstock_broker import PenstockBroker
from simulation.apache.java import java_command
from tests.clients import group_member
from tests.clients.admin import create_topic
from tests.clients.driver import wait_until
from tests.conftest import StartBroker

PARTITIONS = 8
WAIT_S = 60.0
OPTIONS = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
}


class Member:
    """A consumer in a process of its own that says what happens to it, a JSON object a line."""

    def __init__(self, command: list[str], log: Path, *, says_changes: bool) -> None:
        self._says_changes = says_changes  # Java says what is new or gone, the others say all that they have
        self.partitions: set[int] = set()
        self.values: list[str] = []
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith("\n"):
                break  # the last words of one that was killed may be cut short
            event = json.loads(line)
            if event["name"] == "partitions_assigned":
                if self._says_changes:
                    self.partitions = self.partitions | {each["partition"] for each in event["partitions"]}
                else:
                    self.partitions = set(event["partitions"])
            elif event["name"] == "partitions_revoked":
                self.partitions = self.partitions - {each["partition"] for each in event["partitions"]}
            elif event["name"] == "records_consumed":
                self.values += event.get("values", ())
            elif event["name"] == "record_data":
                self.values.append(event["value"])

    def check(self) -> None:
        assert self._process.poll() is None, f"a member has ended:\n{self._log.read_text()[-3000:]}"

    def send(self, number: signal.Signals) -> None:
        os.kill(self._process.pid, number)

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        if self._process.poll() is None:
            self.send(signal.SIGCONT)
            self.send(number)
        self._process.wait(30)
        self._listener.join(30)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self.partitions = set()


StartMember = Callable[..., Member]


@pytest.fixture
def broker_of_groups(start_broker: StartBroker) -> PenstockBroker:
    return start_broker(options=OPTIONS)


@pytest.fixture
def start_member(broker_of_groups: PenstockBroker, tmp_path: Path) -> Iterator[StartMember]:
    started: list[Member] = []

    def start(library: str, topic: str, *, protocol: str = "classic", instance: str | None = None) -> Member:
        bootstrap, group = broker_of_groups.bootstrap, f"readers-of-{topic}"
        if library == "java":
            arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--group-id", group, "--verbose"]
            arguments += ["--group-protocol", protocol.upper()]
            if protocol == "classic":
                arguments += ["--session-timeout", str(group_member.SESSION_TIMEOUT_MS)]
            quiet = ("-Xmx256M", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
            command = java_command(
                "org.apache.kafka.tools.VerifiableConsumer", *arguments, jvm_options=quiet, quick=True
            )
        else:
            command = [sys.executable, group_member.__file__, library, bootstrap, group, topic, protocol]
            command += [instance] if instance is not None else []
        log = tmp_path / f"{library}-{len(started)}.log"
        started.append(Member(command, log, says_changes=library == "java"))
        return started[-1]

    yield start
    for member in started:
        member.end()


def produce_numbers(bootstrap: str, topic: str, first: int, last: int) -> set[str]:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    numbers = [f"{number:05}" for number in range(first, last)]
    for place, number in enumerate(numbers):
        producer.produce(topic, number, partition=place % PARTITIONS)
    assert producer.flush(WAIT_S) == 0
    return set(numbers)


def wait_until_shared(*members: Member) -> None:
    """Each has its share, together they have all, and nobody has what another has."""

    def shares() -> list[list[int]]:
        return [sorted(member.partitions) for member in members]

    def is_shared() -> bool:
        for member in members:
            member.check()
        return all(shares()) and sorted(p for share in shares() for p in share) == list(range(PARTITIONS))

    try:
        wait_until(is_shared, "the partitions are shared", timeout_s=WAIT_S)
    except AssertionError as error:
        raise AssertionError(f"{error}; now {shares()}") from None


def wait_until_read(numbers: set[str], *members: Member) -> None:
    def is_read() -> bool:
        return numbers <= {value for member in members for value in member.values}

    wait_until(is_read, "all records are read", timeout_s=WAIT_S)


@pytest.mark.parametrize(
    ("protocol", "libraries"),
    [("classic", ("java", "confluent", "aiokafka", "kafka_python")), ("consumer", ("java", "confluent"))],
)
def test_all_clients_share_a_group_and_take_over_from_one_that_is_killed_or_stopped(
    broker_of_groups: PenstockBroker,
    start_member: StartMember,
    topic_name: str,
    protocol: str,
    libraries: tuple[str, ...],
) -> None:
    bootstrap = broker_of_groups.bootstrap
    create_topic(bootstrap, topic_name, partitions=PARTITIONS)
    members = [start_member(library, topic_name, protocol=protocol) for library in libraries]
    members.append(start_member("confluent", topic_name, protocol=protocol))
    killed = members[-1]
    wait_until_shared(*members)
    numbers = produce_numbers(bootstrap, topic_name, 0, 400)
    wait_until_read(numbers, *members)
    read = sorted(value for member in members for value in member.values)
    assert read == sorted(numbers), "nothing twice while nobody came or went"
    killed.end(signal.SIGKILL)
    numbers = produce_numbers(bootstrap, topic_name, 400, 800)
    wait_until_shared(*members[:-1])
    wait_until_read(numbers, *members[:-1])
    stopped, others = members[1], [members[0], *members[2:-1]]
    stopped.send(signal.SIGSTOP)
    stopped.partitions = set()  # as the others see it, when its session has ended
    wait_until_shared(*others)
    numbers = produce_numbers(bootstrap, topic_name, 800, 1200)
    wait_until_read(numbers, *others)
    stopped.send(signal.SIGCONT)
    wait_until_shared(stopped, *others)
    numbers = produce_numbers(bootstrap, topic_name, 1200, 1600)
    wait_until_read(numbers, stopped, *others)


def test_a_live_group_changes_to_the_newer_protocol_and_back(
    broker_of_groups: PenstockBroker, start_member: StartMember, topic_name: str
) -> None:
    bootstrap = broker_of_groups.bootstrap
    create_topic(bootstrap, topic_name, partitions=PARTITIONS)
    classic = start_member("confluent", topic_name, protocol="classic")
    wait_until_shared(classic)
    numbers = produce_numbers(bootstrap, topic_name, 0, 100)
    wait_until_read(numbers, classic)
    newer = start_member("java", topic_name, protocol="consumer")
    wait_until_shared(classic, newer)
    numbers = produce_numbers(bootstrap, topic_name, 100, 300)
    wait_until_read(numbers, classic, newer)
    newest = start_member("confluent", topic_name, protocol="consumer")
    wait_until_shared(classic, newer, newest)
    classic.end(signal.SIGKILL)
    wait_until_shared(newer, newest)
    again = start_member("confluent", topic_name, protocol="classic")
    wait_until_shared(newer, newest, again)
    for member in (newer, newest):
        member.end(signal.SIGTERM if member is newer else signal.SIGKILL)
    wait_until_shared(again)
    numbers = produce_numbers(bootstrap, topic_name, 300, 500)
    wait_until_read(numbers, again)
    everybody = [value for member in (classic, newer, newest, again) for value in member.values]
    assert set(everybody) == {f"{number:05}" for number in range(500)}


def test_a_static_member_that_comes_back_keeps_its_partitions(
    broker_of_groups: PenstockBroker, start_member: StartMember, topic_name: str
) -> None:
    create_topic(broker_of_groups.bootstrap, topic_name, partitions=PARTITIONS)
    first = start_member("confluent", topic_name, instance="first")
    second = start_member("confluent", topic_name, instance="second")
    wait_until_shared(first, second)
    had, rest = set(first.partitions), set(second.partitions)
    first.end(signal.SIGKILL)
    again = start_member("confluent", topic_name, instance="first")
    wait_until_shared(again, second)
    assert (again.partitions, second.partitions) == (had, rest)
