"""kafka-streams-application-reset: where offsets go, and what becomes of apps of the library."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from penstock.admin import Cluster, TopicPartition
from penstock.testing.penstock_broker import PenstockBroker
from tests.cli.conftest import Finished, run_command
from tests.cli.group_members import commit, create_topic, member, produce
from tests.conftest import MakeTopic


class Application:
    def __init__(self, broker: PenstockBroker, topic: str) -> None:
        self.bootstrap, self.topic, self.name = broker.bootstrap, topic, f"app-{topic}"
        self.internal = [f"{self.name}-counts-changelog", f"{self.name}-counts-repartition"]
        for name in (*self.internal, f"{self.name}-output"):
            create_topic(broker.bootstrap, name)
        produce(broker.bootstrap, topic, [5, 3])
        commit(broker.bootstrap, self.name, topic, {0: 4, 1: 2})

    def reset(self, *words: str) -> Finished:
        return run_command(
            "kafka-streams-application-reset",
            *("--bootstrap-server", self.bootstrap, "--application-id", self.name),
            *(word.replace("TOPIC", self.topic).replace("APP", self.name) for word in words),
        )

    def offsets(self) -> list[int]:
        with Cluster(self.bootstrap) as cluster:
            committed = cluster.groups.committed(self.name)
        return [committed[TopicPartition(self.topic, number)].offset for number in range(2)]

    def topics(self) -> list[str]:
        with Cluster(self.bootstrap) as cluster:
            return sorted(each.name for each in cluster.topics.list() if each.name.startswith(self.name))


@pytest.fixture
def application(broker: PenstockBroker, make_topic: MakeTopic) -> Application:
    return Application(broker, make_topic(partitions=2))


def test_it_begins_anew_and_its_internal_topics_go(application: Application) -> None:
    planned = application.reset("--input-topics", "TOPIC", "--dry-run")
    assert (application.offsets(), len(application.topics())) == ([4, 2], 3)
    done = application.reset("--input-topics", "TOPIC")
    assert (done.err, done.code) == ("", 0)
    heading, rest = planned.out.split("\n", 1)
    assert heading.startswith("----Dry run displays the actions")
    assert rest == done.out
    assert f"Topic: {application.topic} Partition: 0 Offset: 0\n" in done.out
    assert all(
        name in done.out.split("Deleting inferred internal topics")[1] for name in application.internal
    )
    assert application.offsets() == [0, 0]
    assert application.topics() == [f"{application.name}-output"]


@pytest.mark.parametrize(
    ("words", "offsets"),
    [
        (["--to-earliest"], [0, 0]),
        (["--to-latest"], [5, 3]),
        (["--to-offset", "4"], [4, 3]),
        (["--shift-by", "-2"], [2, 0]),
        (["--by-duration", "P1D"], [0, 0]),
        (["--to-datetime", "2099-01-01T00:00:00.000"], [5, 3]),
        (["--from-file", "FILE"], [1, 2]),
    ],
    ids=lambda each: each[0] if isinstance(each[0], str) else "",
)
def test_offsets_are_what_was_asked_for(
    application: Application, tmp_path: Path, words: list[str], offsets: list[int]
) -> None:
    file = tmp_path / "plan.csv"
    file.write_text(f"{application.topic},0,1\n{application.topic},1,2\n")
    given = [str(file) if word == "FILE" else word for word in words]
    done = application.reset("--input-topics", "TOPIC", *given)
    assert (done.err, done.code) == ("", 0)
    assert application.offsets() == offsets


def test_topics_that_are_not_there_are_told(application: Application) -> None:
    done = application.reset(
        "--input-topics", "TOPIC,nowhere", "--intermediate-topics", "APP-output", "--dry-run"
    )
    assert "Following input topics are not found, skipping them\nTopic: nowhere\n" in done.out
    assert "WARN: `--intermediate-topics` is deprecated" in done.out
    assert done.code == 1


def test_members_hold_it_until_they_are_removed_by_force(application: Application) -> None:
    with member(application.bootstrap, application.name, [application.topic]):
        refused = application.reset("--input-topics", "TOPIC")
        assert f"Consumer group '{application.name}' is still active" in refused.err
        assert (refused.err.count("\n"), refused.code) == (1, 1)
        assert application.offsets() == [4, 2]
        done = application.reset("--input-topics", "TOPIC", "--force")
        assert (done.err, done.code) == ("", 0)


def test_a_time_that_is_none_is_refused(application: Application) -> None:
    done = application.reset("--input-topics", "TOPIC", "--to-datetime", "soon")
    assert "It does not contain a 'T'" in done.err
    assert (done.err.count("\n"), done.code) == (1, 1)


def test_the_older_spelling_of_the_config_is_read(application: Application, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("client.id=me\n")
    done = application.reset("--config-file", str(config), "--dry-run")
    assert done.out.startswith("Option --config-file has been deprecated")
    assert done.code == 0


def test_a_reset_app_of_the_library_reads_from_the_beginning(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    """Names of internal topics are those that penstock.streams gives them."""
    from penstock.spark.tasks import ThreadLauncher
    from penstock.streams import App
    from tests.streams.topics import Reader, put

    source, sink = make_topic(partitions=2), make_topic(partitions=1)
    app = App(f"app-{sink}", bootstrap=broker.bootstrap)
    app.stream(source, key=str, value={"n": int}).group_by("n").count().to(sink)
    put(broker.bootstrap, source, [(key, {"n": 1}, int(time.time() * 1000)) for key in "ab"])
    with Reader(broker.bootstrap, sink) as reader:
        app.start(launcher=ThreadLauncher())
        reader.wait_for(2)
        app.stop()
        done = run_command(
            "kafka-streams-application-reset", "--bootstrap-server", broker.bootstrap, "--application-id", app.name,
            "--input-topics", source,
        )  # fmt: skip
        assert done.code == 0, done.err
        assert "-repartition, " in done.out or "-repartition]" in done.out
        app.start(launcher=ThreadLauncher())
        assert [value["count"] for _, value, _ in reader.wait_for(4)] == [1, 2, 1, 2]
        app.stop()
