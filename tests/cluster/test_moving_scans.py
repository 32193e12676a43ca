"""`penstock.arrow` while leaders move: a scan has each record of its range once, in order, and ends."""

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest
from confluent_kafka import Producer

import penstock.arrow
from penstock.testing.clusters import create_topic, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from tests.cluster.clients import QUIET, WAIT_S, wait_for_leader
from tests.cluster.moves import bring_back, moves

PARTITIONS = 3
RECORDS = 3_000
ABORTED_EVERY = 5  # of the transactions
PER_TRANSACTION = 50
# A few records an answer, so that a scan is still at work when the next leader moves; two answers are read ahead.
SMALL_ANSWERS = {"max.partition.fetch.bytes": 2_000, "fetch.max.bytes": 4_000}


@pytest.fixture(scope="module")
def written(cluster: PenstockCluster) -> tuple[str, dict[int, list[bytes]]]:
    """A topic, and the committed values of each partition in order. Between them are aborted ones."""
    topic = "scanned-while-leaders-move"
    create_topic(
        cluster.bootstrap,
        topic,
        assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]],
        config={"min.insync.replicas": "2"},
    )
    wait_until_in_sync(cluster.bootstrap, [topic])
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": topic, **QUIET})
    producer.init_transactions(WAIT_S)
    committed: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    for number, first in enumerate(range(0, RECORDS, PER_TRANSACTION)):
        producer.begin_transaction()
        is_aborted = number % ABORTED_EVERY == 1
        for value in range(first, first + PER_TRANSACTION):
            text = b"%06d" % value
            producer.produce(topic, text, partition=value % PARTITIONS)
            if not is_aborted:
                committed[value % PARTITIONS].append(text)
        producer.flush(WAIT_S)
        producer.abort_transaction(WAIT_S) if is_aborted else producer.commit_transaction(WAIT_S)
    return topic, committed


def by_partition(batches: Iterator[pa.RecordBatch]) -> dict[int, list[bytes]]:
    """In the order of the rows, whose offsets must rise."""
    found: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    last_offsets = dict.fromkeys(range(PARTITIONS), -1)
    for batch in batches:
        for partition, offset, value in zip(
            *(batch.column(name).to_pylist() for name in ("partition", "offset", "value")), strict=True
        ):
            assert offset > last_offsets[partition]
            last_offsets[partition] = offset
            found[partition].append(value)
    return found


class Scanner(threading.Thread):
    """Scans the topic as a whole, again and again, so that scans begin at any moment of a move."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True, name="scanner")
        self._cluster, self._topic = bootstrap, topic
        self._ends = threading.Event()
        self.found: list[dict[int, list[bytes]]] = []
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._ends.is_set():
                table = penstock.arrow.read(self._topic, bootstrap=self._cluster, options=SMALL_ANSWERS)
                self.found.append(by_partition(iter(table.to_batches())))
        except BaseException as failure:
            self._failure = failure

    def finish(self) -> None:
        self._ends.set()
        self.join(WAIT_S)
        assert not self.is_alive(), "a scan does not end"
        if self._failure is not None:
            raise self._failure


def test_scans_have_each_record_once_through_every_move(
    cluster: PenstockCluster, written: tuple[str, dict[int, list[bytes]]]
) -> None:
    topic, committed = written
    reader = penstock.arrow.batches(topic, bootstrap=cluster.bootstrap, options=SMALL_ANSWERS, batch_rows=100)
    scanner = Scanner(cluster.bootstrap, topic)

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in moves(cluster):
            yield reader.read_next_batch()
        yield from reader

    scanner.start()
    try:
        assert by_partition(batches()) == committed
    finally:
        scanner.finish()
    assert len(scanner.found) > 3
    assert all(found == committed for found in scanner.found)


def test_a_scan_leaves_a_leader_that_does_not_answer(
    cluster: PenstockCluster, written: tuple[str, dict[int, list[bytes]]]
) -> None:
    topic, committed = written
    reader = penstock.arrow.batches(
        topic,
        bootstrap=cluster.address(1),
        options={**SMALL_ANSWERS, "request.timeout.ms": 2_000},
        batch_rows=100,
    )

    def batches() -> Iterator[pa.RecordBatch]:
        yield reader.read_next_batch()
        cluster.pause(1)
        try:
            wait_for_leader(cluster, topic, other_than=1)
            yield from reader
        finally:
            cluster.kill(1)
            bring_back(cluster, 1)

    assert by_partition(batches()) == committed
