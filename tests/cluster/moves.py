"""What moves every leader of a cluster: brokers that are restarted one by one, an election, a broker that is killed."""

import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from penstock.admin.elections import elect_leaders
from penstock.client.clients import Connection
from penstock.client.cluster_client import ClusterClient
from penstock.controller.elections import PREFERRED
from penstock.testing.clusters import WAIT_S, describe, wait_until, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster


def moves(cluster: PenstockCluster) -> Iterator[str]:
    """Says after each move what has been done; whoever asks for the next one has the cluster as it is until then.

    Each broker is stopped and started once, leaders go back to the first replica, and the controller is killed.
    """
    for move in _moves(cluster):
        print(f"{time.monotonic():.3f} {move}", flush=True)
        yield move


def _moves(cluster: PenstockCluster) -> Iterator[str]:
    for broker_id in cluster.broker_ids:
        cluster.stop(broker_id)
        yield f"broker {broker_id} is stopped"
        bring_back(cluster, broker_id)
        yield f"broker {broker_id} is back"
    elect_first_replicas(cluster)
    yield "leaders are elected"
    killed = describe(cluster.bootstrap).controller_id
    cluster.kill(killed)
    yield f"broker {killed}, the controller, is killed"
    wait_until(lambda: not leads_anything(cluster, killed), "leaders in place of those that were killed")
    yield f"others lead in place of broker {killed}"
    bring_back(cluster, killed)
    elect_first_replicas(cluster)
    yield f"broker {killed} is back and leads again"


def bring_back(cluster: PenstockCluster, broker_id: int) -> None:
    """Until it is in sync with the others in all topics that are kept more than once."""
    cluster.start(broker_id)
    topics = describe(cluster.bootstrap).topics.values()
    wait_until_in_sync(cluster.bootstrap, [topic.topic for topic in topics if topic.partitions])


def leads_anything(cluster: PenstockCluster, broker_id: int) -> bool:
    """In the eyes of the others: who is gone does not answer. What it alone keeps nobody can lead in its place."""
    bootstrap = ",".join(cluster.address(each) for each in cluster.broker_ids if each != broker_id)
    return any(
        partition.leader in (-1, broker_id) and len(partition.replicas) > 1
        for topic in describe(bootstrap).topics.values()
        for partition in topic.partitions.values()
    )


def elect_first_replicas(cluster: PenstockCluster) -> None:
    with ClusterClient(Connection(cluster.bootstrap)) as client:
        elect_leaders(client, PREFERRED, None)
    wait_until(
        lambda: all(
            partition.leader == partition.replicas[0]
            for topic in describe(cluster.bootstrap).topics.values()
            for partition in topic.partitions.values()
        ),
        "the first replica leads everywhere",
    )


class Mover(threading.Thread):
    """All moves in a thread of its own, one after the other, while the test does something else."""

    def __init__(self, cluster: PenstockCluster) -> None:
        super().__init__(daemon=True, name="mover")
        self._cluster = cluster
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            for _ in moves(self._cluster):
                pass
        except BaseException as failure:
            self._failure = failure

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.join(10 * WAIT_S)
        if kind is None and self._failure is not None:
            raise self._failure
