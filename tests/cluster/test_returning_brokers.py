"""A replica that returns and finds the world changed: its records are too old, or its disk is empty."""

import shutil

from penstock.testing.clusters import create_topic, wait_until, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from tests.cluster.clients import leader_of, wait_for_leader
from tests.cluster.conftest import StartCluster
from tests.crash.plain_client import produce, read_all

MEBIBYTE = 1024 * 1024


def lead_from(cluster: PenstockCluster, topic: str, broker_id: int) -> None:
    """Stops the others, so that this one leads, and starts one again, so that there are two in sync."""
    for other in cluster.broker_ids:
        if other != broker_id and leader_of(cluster.address(broker_id), topic) != broker_id:
            cluster.stop(other)
            wait_until(
                lambda: leader_of(cluster.address(broker_id), topic) not in (-1, other),  # noqa: B023
                "another leader",
            )
            cluster.start(other)
            wait_until_in_sync(cluster.bootstrap, [topic])
    assert leader_of(cluster.bootstrap, topic) == broker_id


def test_a_follower_whose_disk_was_wiped_has_everything_again(
    cluster: PenstockCluster, topic_name: str
) -> None:
    # Replica 2 is the first in line whenever the leader goes.
    create_topic(cluster.bootstrap, topic_name, assignment=[[2, 1, 3]], config={"min.insync.replicas": "2"})
    produce(cluster.bootstrap, topic_name, [b"%d" % number for number in range(1000)])
    cluster.stop(2)
    leader = wait_for_leader(cluster, topic_name, other_than=2)
    produce(cluster.address(leader), topic_name, [b"while it was away"])
    shutil.rmtree(cluster.data_dir(2))
    cluster.start(2)
    wait_until_in_sync(cluster.bootstrap, [topic_name])
    lead_from(cluster, topic_name, 2)
    assert read_all(cluster.bootstrap, topic_name) == [
        *(b"%d" % number for number in range(1000)),
        b"while it was away",
    ]


def test_a_follower_that_was_away_longer_than_retention_starts_where_the_leader_does(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(
        options={"log.retention.check.interval.ms": "200", "log.initial.task.delay.ms": "0"}
    )
    config = {"segment.bytes": str(MEBIBYTE), "retention.bytes": str(MEBIBYTE), "min.insync.replicas": "2"}
    create_topic(cluster.bootstrap, "aged", assignment=[[2, 1, 3]], config=config)
    wait_until_in_sync(cluster.bootstrap, ["aged"])
    produce(cluster.bootstrap, "aged", [b"known to all"] * 10)
    cluster.stop(2)
    leader = wait_for_leader(cluster, "aged", other_than=2)
    produce(cluster.address(leader), "aged", [bytes(50_000) for _ in range(100)])
    first_segment = cluster.data_dir(leader) / "aged-0" / f"{0:020}.log"
    wait_until(lambda: not first_segment.exists(), "the end of the first segment")
    cluster.start(2)
    wait_until_in_sync(cluster.bootstrap, ["aged"])
    expected = read_all(cluster.bootstrap, "aged")
    assert b"known to all" not in expected
    lead_from(cluster, "aged", 2)
    found = read_all(cluster.bootstrap, "aged")
    assert found == expected[-len(found) :]
    assert found
    assert not (cluster.data_dir(2) / "aged-0" / f"{0:020}.log").exists()
