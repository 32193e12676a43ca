"""kafka-reassign-partitions, kafka-leader-election and the reports of kafka-topics on a cluster of ours: what Apache's tools
say and what ours say is word for word the same."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from penstock.records.batch import CRC_AT, HEADER_SIZE, read_header
from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.penstock_cluster import PenstockCluster
from simulation.apache.java import java_command
from simulation.apache.resident_tools import resident_tool
from tests.cli.conftest import BIN, run_command
from tests.clients.admin import create_topic
from tests.clients.driver import wait_until
from tests.tools.conftest import TOOL_TIMEOUT_S, TOOLS

APACHE = {
    "reassign-partitions": "reassign.ReassignPartitionsCommand",
    "leader-election": "LeaderElectionCommand",
    "topics": "TopicCommand",
}

Answer = tuple[list[str], int]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockCluster]:
    # A paused broker must be taken for a living one during the whole test.
    with PenstockCluster(tmp_path_factory.mktemp("cluster"), session_timeout_ms=60_000) as running:
        yield running


@pytest.fixture
def ours(cluster: PenstockCluster) -> Callable[..., Answer]:
    def run(tool: str, *words: str, bootstrap: str = cluster.bootstrap) -> Answer:
        done = run_command(f"kafka-{tool}", "--bootstrap-server", bootstrap, *words)
        return done.out.splitlines(), done.code

    return run


@pytest.fixture
def apaches(cluster: PenstockCluster) -> Callable[..., Answer]:
    def run(tool: str, *words: str, bootstrap: str = cluster.bootstrap) -> Answer:
        done = resident_tool(
            f"{TOOLS}.{APACHE[tool]}",
            *("--bootstrap-server", bootstrap, *words),
            check=False,
            timeout_s=TOOL_TIMEOUT_S,
        )
        # Apache's tools add a stack trace to an error; ours never do.
        shown = [
            line for line in done.stdout.splitlines() if not line.startswith(("\tat ", "java.", "Caused"))
        ]
        return shown, done.returncode

    return run


def create(cluster: PenstockCluster, topic: str, assignment: str) -> None:
    words = ("--create", "--topic", topic, "--replica-assignment", assignment)
    assert run_command("kafka-topics", "--bootstrap-server", cluster.bootstrap, *words).code == 0


def written(directory: Path, topic: str, **replicas: list[int]) -> str:
    """A reassignment file: `p0=[1, 2]` says who shall keep partition 0."""
    path = directory / "move.json"
    partitions = [
        {"topic": topic, "partition": int(name[1:]), "replicas": brokers}
        for name, brokers in replicas.items()
    ]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def test_a_reassignment_is_proposed_started_and_completed(
    cluster: PenstockCluster,
    ours: Callable[..., Answer],
    apaches: Callable[..., Answer],
    topic_name: str,
    tmp_path: Path,
) -> None:
    create(cluster, topic_name, "1:2,2:3")
    (tmp_path / "topics.json").write_text(json.dumps({"topics": [{"topic": topic_name}], "version": 1}))
    generate = (
        "--generate",
        "--topics-to-move-json-file",
        str(tmp_path / "topics.json"),
        "--broker-list",
        "2,3",
    )
    proposed, code = ours("reassign-partitions", *generate)
    assert code == 0
    assert proposed[:2] == apaches("reassign-partitions", *generate)[0][:2]
    assert proposed[2:4] == ["", "Proposed partition reassignment configuration"]
    assert [set(one["replicas"]) for one in json.loads(proposed[4])["partitions"]] == [{2, 3}, {2, 3}]

    move = ("--reassignment-json-file", written(tmp_path, topic_name, p0=[3, 2], p1=[1]))
    started, code = ours("reassign-partitions", "--execute", *move, "--throttle", "10000000")
    assert code == 0
    assert started[0] == "Current partition replica assignment"
    assert started[-2:] == [
        "The inter-broker throttle limit was set to 10000000 B/s",
        f"Successfully started partition reassignments for {topic_name}-0,{topic_name}-1",
    ]
    wait_until(
        lambda: ours("reassign-partitions", "--list")[0] == ["No partition reassignments found."],
        "the end of the reassignment",
    )
    verified = ours("reassign-partitions", "--verify", *move)
    assert verified[0][1:3] == [
        f"Reassignment of partition {topic_name}-0 is completed.",
        f"Reassignment of partition {topic_name}-1 is completed.",
    ]
    assert verified == apaches("reassign-partitions", "--verify", *move)


def test_a_reassignment_under_way_is_listed_verified_and_cancelled(
    cluster: PenstockCluster,
    ours: Callable[..., Answer],
    apaches: Callable[..., Answer],
    topic_name: str,
    tmp_path: Path,
) -> None:
    controller = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=60).controller_id
    new, old, other = sorted([1, 2, 3], key=lambda broker: broker == controller)
    create(cluster, topic_name, f"{old}:{other}")
    move = ("--reassignment-json-file", written(tmp_path, topic_name, p0=[new, other]))
    settings = tmp_path / "impatient.properties"
    settings.write_text("request.timeout.ms=2000\n")  # Apache's client may ask the paused broker first
    impatient = ("--command-config", str(settings))
    cluster.pause(new)
    try:
        assert ours("reassign-partitions", "--execute", *move)[1] == 0
        # Throttles would be set at the paused broker, too, and waited for.
        for question in (("--list",), ("--verify", *move, "--preserve-throttles"), ("--execute", *move)):
            theirs = apaches("reassign-partitions", *question, bootstrap=f"127.0.0.1:{cluster.port(other)}")
            assert ours("reassign-partitions", *question) == theirs
        for report in ((), ("--under-replicated-partitions",)):
            words = ("--describe", "--topic", topic_name, *report)
            theirs = apaches("topics", *words, *impatient, bootstrap=f"127.0.0.1:{cluster.port(other)}")
            assert ours("topics", *words, bootstrap=f"127.0.0.1:{cluster.port(other)}") == theirs
            assert len(theirs[0]) == (0 if report else 2)
        assert ours("reassign-partitions", "--list")[0] == [
            "Current partition reassignments:",
            f"{topic_name}-0: replicas: {new},{other},{old}. adding: {new}. removing: {old}.",
        ]
        cancelled, code = ours("reassign-partitions", "--cancel", *move, "--preserve-throttles")
    finally:
        cluster.resume(new)
    assert (cancelled[0], code) == (f"Successfully cancelled partition reassignment for: {topic_name}-0", 0)
    assert ours("reassign-partitions", "--list")[0] == ["No partition reassignments found."]


def test_what_cannot_be_reassigned_is_told_in_the_same_words(
    cluster: PenstockCluster,
    ours: Callable[..., Answer],
    apaches: Callable[..., Answer],
    topic_name: str,
    tmp_path: Path,
) -> None:
    create(cluster, topic_name, "1:2")
    for replicas, index, reason in (
        ([1, 9], 0, "Error: Unknown broker id 9"),
        ([1, 1], 0, "may not contain duplicate entries"),
        ([1], 7, f"Unable to find partition: {topic_name}-7"),
    ):
        path = written(tmp_path, topic_name, **{f"p{index}": replicas})
        words = ("--execute", "--reassignment-json-file", path)
        said = ours("reassign-partitions", *words)
        assert reason in said[0][0]
        theirs, code = apaches("reassign-partitions", *words)
        assert said == (theirs[:1], code)


def test_leaders_go_back_to_their_places(
    cluster: PenstockCluster, ours: Callable[..., Answer], apaches: Callable[..., Answer], topic_name: str
) -> None:
    create(cluster, topic_name, "1:2")
    one = ("--election-type", "preferred", "--topic", topic_name, "--partition", "0")
    assert ours("leader-election", *one) == (
        [f"Valid replica already elected for partitions {topic_name}-0"],
        0,
    )
    assert apaches("leader-election", *one) == ours("leader-election", *one)
    cluster.stop(1)
    for report in ("under-replicated", "at-min-isr"):
        words = ("--describe", "--topic", topic_name, f"--{report}-partitions")
        told, code = ours("topics", *words)
        assert (len(told), code) == (1, 0)
        assert (told, code) == apaches("topics", *words)
    cluster.start(1)

    def is_elected() -> bool:
        done = f"Successfully completed leader election (PREFERRED) for partitions {topic_name}-0"
        return ours("leader-election", *one)[0] == [done]

    wait_until(is_elected, "the preferred leader to be in sync again")
    missing = ("--election-type", "unclean", "--topic", "no-such-topic", "--partition", "0")
    assert ours("leader-election", *missing) == apaches("leader-election", *missing)


def test_a_lone_broker_takes_a_move_to_itself_and_refuses_others(
    broker: PenstockBroker,
    ours: Callable[..., Answer],
    apaches: Callable[..., Answer],
    topic_name: str,
    tmp_path: Path,
) -> None:
    create_topic(broker.bootstrap, topic_name, partitions=2)

    def both(*words: str) -> list[str]:
        said = ours("reassign-partitions", *words, bootstrap=broker.bootstrap)
        assert said == apaches("reassign-partitions", *words, bootstrap=broker.bootstrap)
        assert said[1] == 0
        return said[0]

    assert both("--list") == ["No partition reassignments found."]
    move = ("--reassignment-json-file", written(tmp_path, topic_name, p0=[1], p1=[1]))
    started = both("--execute", *move)
    assert started[-1] == f"Successfully started partition reassignments for {topic_name}-0,{topic_name}-1"
    assert both("--verify", *move)[1:3] == [
        f"Reassignment of partition {topic_name}-0 is completed.",
        f"Reassignment of partition {topic_name}-1 is completed.",
    ]
    assert both("--list") == ["No partition reassignments found."]
    away = ("--reassignment-json-file", written(tmp_path, topic_name, p0=[7]))
    for refused, code in (
        ours("reassign-partitions", "--execute", *away, bootstrap=broker.bootstrap),
        apaches("reassign-partitions", "--execute", *away, bootstrap=broker.bootstrap),
    ):
        assert (refused[0], code) == ("Error: Unknown broker id 7", 1)


def reports(lines: list[str]) -> list[str]:
    """Without their times."""
    return [line.partition(": ")[2] for line in lines]


def ours_until(cluster: PenstockCluster, topic: str, said: str) -> list[str]:
    """What our kafka-replica-verification says until a line ends with this."""
    words = ("--broker-list", cluster.bootstrap, "--topics-include", topic, "--time", "-2")
    command = [BIN / "kafka-replica-verification", *words, "--report-interval-ms", "500"]
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if line.endswith(said + "\n"):
                break
        process.terminate()
        process.communicate(timeout=TOOL_TIMEOUT_S)
    assert process.returncode == 143
    return lines


def test_replicas_are_compared_by_both_tools_until_one_is_damaged(
    cluster: PenstockCluster, topic_name: str
) -> None:
    create(cluster, topic_name, "1:2:3")
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(10):
        producer.produce(topic_name, str(number))
    assert producer.flush(60) == 0
    same = f"max lag is 0 for partition {topic_name}-0 at offset 10 among 1 partitions"
    assert reports(ours_until(cluster, topic_name, same))[0] == "verification process is started"
    apaches = java_command(
        f"{TOOLS}.ReplicaVerificationTool",
        *("--broker-list", cluster.bootstrap, "--topics-include", topic_name, "--time", "-2"),
        *("--report-interval-ms", "500"),
    )
    with subprocess.Popen(apaches, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        lines = (line.rstrip("\n").partition(": ")[2] for line in process.stdout)
        assert next(lines) == "verification process is started"
        assert same in lines
        process.terminate()
    log = cluster.data_dir(3) / f"{topic_name}-0" / f"{0:020d}.log"
    with log.open("r+b") as file:
        header = read_header(file.read(HEADER_SIZE))
        file.seek(CRC_AT)
        file.write((header.crc ^ 1).to_bytes(4, "big"))
    differs = (
        f"partition {topic_name}-0 has unmatched checksum at offset {header.last_offset}; replica 1's checksum "
        f"{header.crc}; replica 3's checksum {header.crc ^ 1}"
    )
    assert differs in reports(ours_until(cluster, topic_name, differs))
