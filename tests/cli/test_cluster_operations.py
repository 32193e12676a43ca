"""Brokers restarted, drained, replaced and removed while the cluster serves; topics with more copies."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tests.cli.boxes import ELSEWHERE, TestBox
from tests.cli.conftest import BIN, Finished, run_command
from tests.clients.driver import wait_until


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBox]:
    """Four brokers, kept all the time."""
    made = TestBox(tmp_path_factory.mktemp("operations") / "box")
    started = made.up_anew("--brokers", "4")
    assert started.code == 0, started.err
    yield made
    made.close()
    assert not [path.name for path in made.directory.glob("*.log") if "Traceback" in path.read_text()]


def penstock(box: TestBox, *words: str) -> Finished:
    return run_command("penstock", *words, "-b", box.bootstrap)


def create(box: TestBox, topic: str, *assignment: list[int]) -> None:
    by_hand = ",".join(":".join(map(str, replicas)) for replicas in assignment)
    words = ("--create", "--topic", topic, "--replica-assignment", by_hand)
    assert run_command("kafka-topics", "--bootstrap-server", box.bootstrap, *words).code == 0


def replicas(box: TestBox, topic: str) -> list[list[int]]:
    words = ("--describe", "--topic", topic)
    described = run_command("kafka-topics", "--bootstrap-server", box.bootstrap, *words).out.splitlines()[1:]
    return [[int(one) for one in line.split("Replicas: ")[1].split("\t")[0].split(",")] for line in described]


def settings(box: TestBox, *entity: str) -> list[str]:
    words = ("--bootstrap-server", box.bootstrap, "--describe", *entity)
    return run_command("kafka-configs", *words).out.splitlines()[1:]


def test_a_drained_broker_keeps_nothing_and_no_throttle_stays(box: TestBox, topic_name: str) -> None:
    create(box, topic_name, [1, 2], [2, 3], [3, 1])
    done = penstock(box, "cluster", "drain", "2", "--at-once", "1", "--throttle", "100000000")
    assert done.code == 0, done.err
    assert "broker 2 keeps nothing any more" in done.err
    assert all(2 not in brokers and len(brokers) == 2 for brokers in replicas(box, topic_name))
    assert settings(box, "--topic", topic_name) == []
    assert settings(box, "--broker", "1") == []
    at_the_group = ("penstock", "cluster", "-b", box.bootstrap, "drain", "2")
    again = run_command(*at_the_group, environment=ELSEWHERE)
    assert (again.code, again.err) == (0, "✓ broker 2 keeps nothing any more (0 partitions moved)\n")


def test_a_dead_broker_is_replaced_where_there_is_another_copy(box: TestBox, topic_name: str) -> None:
    alone = f"{topic_name}-alone"
    create(box, topic_name, [3, 1], [1, 3])
    create(box, alone, [3])
    box.kill("broker-3")
    wait_until(lambda: 3 in box.status()["missing_brokers"], "the loss of broker 3 to be noticed")
    done = penstock(box, "cluster", "replace", "3", "--with", "4")
    assert done.code == 1, done.err
    told = done.err.splitlines()[-1]
    assert told.startswith(f"penstock: without a leader, and not moved: {alone}-0; start broker 3")
    assert replicas(box, topic_name) == [[4, 1], [1, 4]]
    assert box.up().code == 0
    wait_until(lambda: box.status()["healthy"], "the broker's return")
    assert penstock(box, "cluster", "replace", "3", "--with", "4").code == 0
    assert replicas(box, alone) == [[4]]


def test_a_topic_gets_more_copies_and_fewer(box: TestBox, topic_name: str) -> None:
    create(box, topic_name, [1], [2])
    raised = penstock(box, "topics", "alter", topic_name, "--replication-factor", "3")
    assert raised.code == 0, raised.err
    assert f"{topic_name} has 3 replicas of each partition now (2 partitions moved)" in raised.err
    assert [len(brokers) for brokers in replicas(box, topic_name)] == [3, 3]
    assert penstock(box, "topics", "alter", topic_name, "-r", "1").code == 0
    assert replicas(box, topic_name) == [[1], [2]]
    refused = penstock(box, "topics", "alter", topic_name, "-r", "5")
    assert (refused.code, refused.err) == (1, "penstock: 5 replicas need 5 brokers, and there are 4\n")


def test_an_interrupted_drain_is_taken_up_by_the_next_one(box: TestBox, topic_name: str) -> None:
    create(box, topic_name, *([1, 2] for _ in range(4)))
    controller = box.status()["controller"]
    others = [broker for broker in (3, 4) if broker != controller]
    for broker in others:
        os.kill(box.pids()[f"broker-{broker}"], signal.SIGSTOP)
    try:
        reachable = ",".join(box.bootstrap.split(",")[:2])
        drain = [str(BIN / "penstock"), "cluster", "drain", "1", "-b", reachable, "--at-once", "2"]
        process = subprocess.Popen(drain, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        for line in process.stderr:
            if "partitions moved" in line:
                break
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        process.stderr.close()
        assert process.wait(60) == 130
    finally:
        for broker in others:
            os.kill(box.pids()[f"broker-{broker}"], signal.SIGCONT)
    assert "run the same command again for the rest" in said
    assert "Traceback" not in said
    wait_until(lambda: box.status()["controller"] is not None, "a controller")
    done = penstock(box, "cluster", "drain", "1")
    assert done.code == 0, done.err
    assert all(1 not in brokers for brokers in replicas(box, topic_name))


def test_a_rolling_restart_is_not_noticed_by_clients(box: TestBox, topic_name: str) -> None:
    create(box, topic_name, [1, 2, 3], [2, 3, 4], [3, 4, 1])
    before = box.pids()
    errors: list[KafkaError] = []
    acknowledged = 0
    is_over = threading.Event()

    def delivered(error: KafkaError | None, message: Message) -> None:
        nonlocal acknowledged
        if error is not None:
            errors.append(error)
        else:
            acknowledged += 1

    def produce() -> None:
        producer = Producer({"bootstrap.servers": box.bootstrap, "enable.idempotence": True})
        while not is_over.is_set():
            producer.produce(topic_name, b"x" * 100, on_delivery=delivered)
            producer.poll(0.001)
        assert producer.flush(60) == 0

    writer = threading.Thread(target=produce)
    writer.start()
    try:
        wait_until(lambda: acknowledged > 0, "the first record")
        done = box.run("cluster", "restart", "--rolling")
    finally:
        is_over.set()
        writer.join()
    assert done.code == 0, done.err
    assert errors == []
    after = box.pids()
    assert after["zookeeper"] == before["zookeeper"]
    assert all(after[name] != before[name] for name in before if name != "zookeeper")
    assert box.status()["not_preferred"] == []


def test_a_restart_leaves_a_broker_that_was_stopped_on_purpose_alone(box: TestBox, topic_name: str) -> None:
    create(box, topic_name, [4, 1], [1, 4])
    assert box.run("down", "--only", "broker-4").code == 0
    before = box.pids()
    done = box.run("cluster", "restart", "--rolling", "--only", "broker-2", "--only", "broker-2")
    assert done.code == 0, done.err
    after = box.pids()
    assert {name for name in before if before[name] != after[name]} == {"broker-2"}
    assert "broker-4" not in after
    assert "all replicas are in sync, but for those of brokers that do not run: 4\n" in done.err
    assert "not led by the preferred replica (topic-" in done.err
    assert "the preferred replicas lead" not in done.err
    assert box.up().code == 0
    wait_until(lambda: box.status()["healthy"], "the broker's return")


def test_a_removed_broker_is_drained_and_stopped_for_good(box: TestBox, topic_name: str) -> None:
    create(box, topic_name, [4, 1])
    done = box.run("cluster", "remove", "4")
    assert done.code == 0, done.err
    assert "broker-4 has stopped" in done.err
    assert 4 not in replicas(box, topic_name)[0]
    wait_until(lambda: len(box.status()["brokers"]) == 3, "the broker to be gone")
    assert box.status()["healthy"]
    assert "there is no 'broker-4'" in box.run("cluster", "remove", "4").err


def test_what_cannot_be_done_is_told_in_one_line(box: TestBox, topic_name: str, tmp_path: Path) -> None:
    create(box, topic_name, [1, 2, 3])
    drained = penstock(box, "cluster", "drain", "3")
    assert drained.code == 1
    assert "without broker 3 only 2 brokers would be left" in drained.err
    replaced = penstock(box, "cluster", "replace", "3", "--with", "9")
    assert (replaced.code, replaced.err) == (1, "penstock: broker 9 is not in the cluster: start it first\n")
    itself = penstock(box, "cluster", "replace", "2", "--with", "2")
    assert (itself.code, itself.err.count("\n")) == (1, 1)
    for command in (("drain", "99"), ("replace", "99", "--with", "2")):
        unknown = penstock(box, "cluster", *command)
        assert (unknown.code, unknown.err) == (
            1,
            "penstock: there is no broker 99: it is not in the cluster, and keeps nothing\n",
        )
    no_broker = box.run("cluster", "restart", "--rolling", "--only", "zookeeper")
    assert no_broker.err.startswith("penstock: zookeeper is no broker")
    elsewhere = run_command("penstock", "cluster", "-b", box.bootstrap, "restart", "--rolling")
    assert elsewhere.err.startswith("penstock: cluster restart goes by --data and not by -b")
