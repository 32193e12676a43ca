"""kafka-streams-application-reset: in Kafka's words, and only what belongs to the application."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer

from penstock.admin import Cluster, TopicPartition
from penstock.testing.penstock_broker import PenstockBroker
from tests.cli.conftest import Run
from tests.clients.driver import wait_until

TOOL = "streams-application-reset"


@pytest.fixture
def application(broker: PenstockBroker, topic_name: str) -> Iterator[str]:
    """Its input topic is `<id>-in`, of two partitions with three records each."""
    with Cluster(broker.bootstrap) as cluster:
        cluster.topics.create(f"{topic_name}-in", partitions=2)
        for name in ("store-changelog", "by-repartition", "mine"):
            cluster.topics.create(f"{topic_name}-{name}", partitions=1)
        cluster.groups.commit(topic_name, {TopicPartition(f"{topic_name}-in", each): 0 for each in (0, 1)})
        yield topic_name


def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    broker: PenstockBroker, kafka: Run, application: str
) -> None:
    topic = f"{application}-in"
    done = kafka(TOOL, "--application-id", application, "--input-topics", topic, "--dry-run")
    assert done.out.splitlines() == [
        "----Dry run displays the actions which will be performed when running Streams Reset Tool----",
        f"Reset-offsets for input topics [{topic}]",
        f"Following input topics offsets will be reset to (for consumer group {application})",
        *sorted(
            (f"Topic: {topic} Partition: {each} Offset: 0" for each in (0, 1)),
            key=lambda line: done.out.index(line),
        ),
        "Done.",
        done.out.splitlines()[-2],
        "Done.",
    ]
    told = done.out.splitlines()[-2].removeprefix("Deleting inferred internal topics [").removesuffix("]")
    assert sorted(told.split(", ")) == [f"{application}-by-repartition", f"{application}-store-changelog"]
    with Cluster(broker.bootstrap) as cluster:
        assert f"{application}-store-changelog" in [each.name for each in cluster.topics.list()]


def test_input_goes_where_it_is_told_and_internal_topics_go(
    broker: PenstockBroker, kafka: Run, application: str
) -> None:
    topic = f"{application}-in"
    done = kafka(
        TOOL, "--application-id", application, "--input-topics", f"{topic},nowhere", "--to-latest",
        "--internal-topics", f"{application}-store-changelog",
    )  # fmt: skip
    assert done.code == 1
    assert "Following input topics are not found, skipping them\nTopic: nowhere\n" in done.out
    assert f"Deleting specified internal topics [{application}-store-changelog]" in done.out
    with Cluster(broker.bootstrap) as cluster:
        names = [each.name for each in cluster.topics.list()]
        assert f"{application}-store-changelog" not in names
        assert {f"{application}-by-repartition", f"{application}-mine"} <= set(names)
        committed = cluster.groups.committed(application)
        assert {place: each.offset for place, each in committed.items()} == cluster.offsets.ends(topic)


def test_what_cannot_be_is_refused(kafka: Run, application: str) -> None:
    other = kafka(TOOL, "--application-id", application, "--internal-topics", f"{application}-mine")
    assert other.code == 1
    assert "Invalid topic specified in the --internal-topics option" in other.err
    both = kafka(TOOL, "--application-id", application, "--to-latest", "--to-offset", "3")
    assert (both.code, both.err.splitlines()[0]) == (
        1,
        """Option "[to-offset]" can't be used with option "[to-latest]\"""",
    )
    nobody = kafka(TOOL)
    assert (nobody.code, nobody.err.splitlines()[0]) == (1, "Missing required option(s) [application-id]")


def test_an_application_that_runs_is_left_alone_unless_forced(
    broker: PenstockBroker, kafka: Run, application: str
) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": application, "log_level": 0})
    consumer.subscribe([f"{application}-in"])
    wait_until(lambda: consumer.poll(0.05) is not None or bool(consumer.assignment()), "it is a member")
    refused = kafka(TOOL, "--application-id", application, "--input-topics", f"{application}-in")
    assert refused.code == 1
    assert f"ERROR: Consumer group '{application}' is still active and has following members" in refused.err
    forced = kafka(TOOL, "--application-id", application, "--input-topics", f"{application}-in", "--force")
    consumer.close()
    assert forced.code == 0, forced.err
    assert forced.out.startswith(f"Force deleting all active members in the group: {application}\n")
