"""kafka-share-groups and kafka-streams-groups: on Apache Kafka they say what Kafka's own tools say, word for word."""

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulation.apache.apache_kafka import ApacheKafka
from simulation.apache.java import java_command
from simulation.apache.resident_tools import resident_tool
from tests.cli.conftest import run_command
from tests.cli.group_members import commit, create_topic, produce
from tests.clients.driver import wait_until
from tests.tools.conftest import TOOL_TIMEOUT_S, TOOLS
from tests.tools.test_streams import INPUT, OUTPUT, WORD_COUNT

SHARE = ("consumer.group.ShareGroupCommand", "kafka-share-groups")
STREAMS = ("streams.StreamsGroupCommand", "kafka-streams-groups")
SHARERS, APPLICATION = "sharers", "streams-wordcount"
# Two topics of one broker: the topic of the coordinator of share groups has three copies by default.
ALONE = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
QUIET = ("-Xmx256M", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster with a share group that has read, a streams group that runs, and a group of consumers."""
    folder = tmp_path_factory.mktemp("apache")
    with ApacheKafka(folder, quick=True, properties=ALONE) as kafka:
        address = kafka.bootstrap
        for topic, partitions in (("orders", 3), (INPUT, 2), (OUTPUT, 2)):
            create_topic(address, topic, partitions=partitions)
        produce(address, INPUT, [4, 1])
        commit(address, "idle", "orders", {0: 3})
        job = folder / "job.properties"
        job.write_text(
            f"bootstrap.servers={address}\ngroup.protocol=streams\nstate.dir={folder / 'state'}\ncommit.interval.ms=100\n"
        )
        sharing = ("--bootstrap-server", address, "--topic", "orders", "--group", SHARERS)
        members = [
            subprocess.Popen(
                java_command(main, *words, jvm_options=QUIET, quick=True),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for main, words in (
                (f"{TOOLS}.consumer.ConsoleShareConsumer", sharing),
                (WORD_COUNT, (str(job),)),
            )
        ]
        try:
            wait_until(lambda: "orders:0,1,2" in theirs(address, SHARE, "--describe --group sharers --members").out,
                       "the share group to have its partitions", timeout_s=TOOL_TIMEOUT_S)  # fmt: skip
            produce(address, "orders", [2, 1, 0])
            wait_until(lambda: " 0   " in told(address, SHARE, "--describe --group sharers --verbose"),
                       "the share group to have read", timeout_s=TOOL_TIMEOUT_S)  # fmt: skip
            wait_until(lambda: "repartition 1          0" in told(address, STREAMS, f"--describe --group {APPLICATION}"),
                       "the program to have read all", timeout_s=TOOL_TIMEOUT_S)  # fmt: skip
            yield address
        finally:
            for each in members:
                each.kill()
                each.wait()


class Said:
    def __init__(self, out: str, code: int) -> None:
        self.out, self.code = out, code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Said) and (self.out, self.code) == (other.out, other.code)

    def __repr__(self) -> str:
        return f"{self.code}\n{self.out}"


def theirs(address: str, tools: tuple[str, str], line: str) -> Said:
    words = ("--bootstrap-server", address, *shlex.split(line))
    done = resident_tool(f"{TOOLS}.{tools[0]}", *words, timeout_s=TOOL_TIMEOUT_S, check=False)
    return Said(done.stdout, done.returncode)


def told(address: str, tools: tuple[str, str], line: str) -> str:
    return theirs(address, tools, line).out


@pytest.mark.parametrize("tools", [SHARE, STREAMS], ids=["share", "streams"])
@pytest.mark.parametrize(
    "line",
    [
        "--list",
        "--list --state",
        "--list --state empty",
        "--describe --group GROUP",
        "--describe --group GROUP --offsets --verbose",
        "--describe --group GROUP --members",
        "--describe --group GROUP --members --verbose",
        "--describe --all-groups --state",
        "--describe --group GROUP --state --verbose",
        "--describe --group nope",
        "--describe --group idle --state",
    ],
)
def test_groups_are_told_in_kafkas_words(bootstrap: str, tools: tuple[str, str], line: str) -> None:
    line = line.replace("GROUP", SHARERS if tools is SHARE else APPLICATION)
    ours = run_command(tools[1], "--bootstrap-server", bootstrap, *shlex.split(line))
    assert Said(ours.out, ours.code) == theirs(bootstrap, tools, line)
    assert ours.err == ""


@pytest.mark.parametrize("tools", [SHARE, STREAMS], ids=["share", "streams"])
@pytest.mark.parametrize(
    "line", ["--list --state bogus", "--describe", "--describe --group a --members --state"]
)
def test_a_wrong_command_line_is_told_in_kafkas_words(
    bootstrap: str, tools: tuple[str, str], line: str
) -> None:
    words = ("--bootstrap-server", bootstrap, *shlex.split(line))
    ours = run_command(tools[1], *words)
    done = resident_tool(f"{TOOLS}.{tools[0]}", *words, timeout_s=TOOL_TIMEOUT_S, check=False)
    said, kafkas = (text.splitlines()[0].partition(" states are: ") for text in (ours.err, done.stderr))
    assert said[0] == kafkas[0]
    assert set(said[2].split(", ")) == set(kafkas[2].split(", "))  # Kafka's order is that of a hash set
    assert ours.code == done.returncode == 1


def test_an_empty_group_is_told_from_one_with_members(bootstrap: str, tmp_path: Path) -> None:
    """Made by Kafka's tool: it sets where a share group that nobody has joined begins."""
    words = ("--reset-offsets", "--group", "fresh", "--topic", "orders", "--to-earliest", "--execute")
    theirs(bootstrap, SHARE, shlex.join(words))
    for view in ("", "--members", "--state"):
        line = f"--describe --group fresh {view}"
        ours = run_command(SHARE[1], "--bootstrap-server", bootstrap, *shlex.split(line))
        assert Said(ours.out, ours.code) == theirs(bootstrap, SHARE, line)
