"""A Kafka Streams job, in Java, over our broker: the word count of Apache's quick start, exactly once."""

import subprocess
import time
from collections import Counter
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from simulation.apache.java import java_command
from tests.clients.admin import create_topic
from tests.conftest import StartBroker

INPUT, OUTPUT = "streams-plaintext-input", "streams-wordcount-output"
WORD_COUNT = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"
PARTITIONS = 2
DEADLINE_S = 120.0


def start_job(directory: Path, bootstrap: str) -> subprocess.Popen[bytes]:
    properties = {
        "bootstrap.servers": bootstrap,
        "processing.guarantee": "exactly_once_v2",
        "state.dir": str(directory / "state"),
        "commit.interval.ms": "50",
        # A killed job's transaction must not hold up its successor for the default of ten seconds, nor its session.
        "producer.transaction.timeout.ms": "5000",
        "consumer.session.timeout.ms": "6000",
        "statestore.cache.max.bytes": "0",
    }
    path = directory / "job.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    quiet = ("-Xmx256M", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
    log = (directory / "job.log").open("ab")
    with log:
        return subprocess.Popen(
            java_command(WORD_COUNT, str(path), jvm_options=quiet, quick=True), stdout=log, stderr=log
        )


def produce_lines(bootstrap: str, first: int, last: int) -> Counter[str]:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
    words: Counter[str] = Counter()
    for number in range(first, last):
        line = f"all word{number % 13} word{number % 7}"
        words.update(line.split())
        producer.produce(INPUT, line, partition=number % PARTITIONS)
    assert producer.flush(30) == 0
    return words


class Counts:
    """What a reader of the output sees: every update of a word's count, in the order of its partition."""

    def __init__(self, bootstrap: str) -> None:
        self.updates: dict[str, list[int]] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "not used",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(OUTPUT, index, 0) for index in range(PARTITIONS)])

    def read(self, timeout_s: float = 0.2) -> None:
        for message in self._consumer.consume(1000, timeout_s):
            if message.error() is None:
                word, count = (message.key() or b"").decode(), int.from_bytes(message.value() or b"", "big")
                self.updates.setdefault(word, []).append(count)

    def read_until(self, word: str, count: int, job: subprocess.Popen[bytes], log: Path) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while self.updates.get(word, [0])[-1] < count:
            assert job.poll() is None, f"the job has ended:\n{log.read_text()[-3000:]}"
            assert time.monotonic() < deadline, f"{word}: {self.updates.get(word)}\n{log.read_text()[-3000:]}"
            self.read()

    def close(self) -> None:
        self._consumer.close()


def test_a_word_count_is_exact_although_the_job_and_the_broker_are_killed(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = start_broker()
    bootstrap, log = broker.bootstrap, tmp_path / "job.log"
    for topic in (INPUT, OUTPUT):
        create_topic(bootstrap, topic, partitions=PARTITIONS)
    words = produce_lines(bootstrap, 0, 1000)
    counts = Counts(bootstrap)
    job = start_job(tmp_path, bootstrap)
    try:
        counts.read_until("all", 300, job, log)
        job.kill()  # with transactions open and state on its disk that is ahead of them
        job.wait(30)
        words += produce_lines(bootstrap, 1000, 2000)
        job = start_job(tmp_path, bootstrap)
        counts.read_until("all", 1300, job, log)
        broker.kill()
        broker = start_broker(port=broker.port)
        words += produce_lines(bootstrap, 2000, 2500)
        counts.read_until("all", 2500, job, log)
        for word, count in words.items():
            counts.read_until(word, count, job, log)
    finally:
        job.kill()
        job.wait(30)
    counts.read(2.0)
    counts.close()
    # Each line was counted once and each count said once: 1, 2, 3 … without a gap or a repetition.
    for word, count in words.items():
        assert counts.updates[word] == list(range(1, count + 1)), word
