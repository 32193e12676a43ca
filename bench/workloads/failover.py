"""Brokers that die or are stopped, and how long their partitions are without a leader that takes records."""

import socket
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing

from bench.clusters import ON_ZOOKEEPER, SESSION_TIMEOUT_S, start_cluster
from bench.context import Context
from bench.leaders import SessionWatch, ask_metadata, connect, steady_producer
from bench.measure import Row, Sample, Scale
from bench.raw import Refused
from bench.servers import KAFKA_3, PENSTOCK_3
from penstock.testing.clusters import BrokerCluster, create_topic, describe, wait_until_in_sync
from penstock.testing.zookeeper import ZooKeeperServer

SIDES = (KAFKA_3, PENSTOCK_3)
STEADY_S = 0.5  # of acknowledged records before anything happens
FAILOVER_TIMEOUT_S = 120.0
MANY_POLL_INTERVAL_S = 0.02


class Failover:
    """Each time a topic of its own, whose one partition the victim leads; afterwards the victim returns."""

    name = "failover"
    server_names = ON_ZOOKEEPER
    about = (
        "kill -9 and SIGTERM of a leader: the longest time between two acknowledgements of a producer (raw "
        "socket, acks=all, RF 3) that follows the leader"
    )

    def __init__(self, *, kills: int = 3, controller_kills: int = 1, shutdowns: int = 3) -> None:
        self.kills, self.controller_kills, self.shutdowns = kills, controller_kills, shutdowns
        killed = (
            f"kill -9 of a leader (session timeout {SESSION_TIMEOUT_S} s), until its partition takes records"
        )
        limit_s = SESSION_TIMEOUT_S + 0.5
        self.rows = (
            Row("kill_s", killed, "s", "lower", limit_s, bounds="value", sides=SIDES),
            Row("kill_ratio_s", f"{killed}, beside Apache Kafka", "s", "lower", 1.0, sides=SIDES),
            Row(
                *("elect_ms", "… of it, after ZooKeeper has ended the session", "ms", "lower"),
                *(None,),
                sides=SIDES,
            ),
            Row(
                *("controller_s", "kill -9 of a leader that is the controller too", "s", "lower"),
                *(None,),
                sides=SIDES,
            ),
            Row(
                *("shutdown_ms", "controlled shutdown of a leader, time without one", "ms", "lower"),
                *(0.5,),
                sides=SIDES,
            ),
        )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=0)

    def run(self, context: Context) -> Sample:
        with ExitStack() as stack:
            directory = stack.enter_context(context.fresh_directory())
            zookeeper = stack.enter_context(ZooKeeperServer(directory / "zookeeper"))
            cluster = stack.enter_context(start_cluster(context.kind, directory, zookeeper=zookeeper))
            sessions = stack.enter_context(closing(SessionWatch(zookeeper.address)))
            shutdowns = [self._shut_down(cluster, f"stopped-{number}") for number in range(self.shutdowns)]
            kills = [self._kill(cluster, sessions, f"killed-{number}") for number in range(self.kills)]
            controllers = [
                self._kill(cluster, sessions, f"controller-{number}", is_controller=True)
                for number in range(self.controller_kills)
            ]
        kill_s = statistics.median(gap for gap, _ in kills)
        return Sample(
            {
                "kill_s": kill_s,
                "kill_ratio_s": kill_s,
                "elect_ms": statistics.median(elect for _, elect in kills) * 1000,
                "controller_s": statistics.median(gap for gap, _ in controllers),
                "shutdown_ms": statistics.median(shutdowns) * 1000,
            },
            extra={
                **{f"kill_{number}_s": gap for number, (gap, _) in enumerate(kills)},
                **{f"elect_{number}_ms": elect * 1000 for number, (_, elect) in enumerate(kills)},
                **{f"controller_elect_{n}_ms": elect * 1000 for n, (_, elect) in enumerate(controllers)},
                **{f"shutdown_{number}_ms": gap * 1000 for number, gap in enumerate(shutdowns)},
            },
        )

    def _kill(
        self, cluster: BrokerCluster, sessions: SessionWatch, topic: str, *, is_controller: bool = False
    ) -> tuple[float, float]:
        """Seconds without a leader, and how many of them came after the end of the session."""
        victim = prepare(cluster, topic, is_controller=is_controller)
        with steady_producer({each: cluster.port(each) for each in cluster.broker_ids}, topic) as producer:
            producer.wait_for_acknowledgement(time.monotonic() + STEADY_S, timeout_s=FAILOVER_TIMEOUT_S)
            session = sessions.ended(victim)
            killed_at = time.monotonic()
            cluster.kill(victim)
            producer.wait_for_acknowledgement(time.monotonic() + STEADY_S, timeout_s=FAILOVER_TIMEOUT_S)
            gap_s, ended_at = producer.longest_gap(killed_at)
        cluster.start(victim)
        return gap_s, ended_at - session.wait(timeout_s=FAILOVER_TIMEOUT_S)

    def _shut_down(self, cluster: BrokerCluster, topic: str) -> float:
        victim = prepare(cluster, topic, is_controller=False)
        with steady_producer({each: cluster.port(each) for each in cluster.broker_ids}, topic) as producer:
            producer.wait_for_acknowledgement(time.monotonic() + STEADY_S, timeout_s=FAILOVER_TIMEOUT_S)
            stopped_at = time.monotonic()
            cluster.stop(victim)
            producer.wait_for_acknowledgement(time.monotonic() + STEADY_S, timeout_s=FAILOVER_TIMEOUT_S)
            gap_s, _ = producer.longest_gap(stopped_at)
        cluster.start(victim)
        return gap_s


def prepare(cluster: BrokerCluster, topic: str, *, is_controller: bool) -> int:
    """Makes the topic and returns the broker that leads it: the controller, or another, as wanted."""
    controller_id = describe(cluster.bootstrap).controller_id
    others = [each for each in cluster.broker_ids if each != controller_id]
    replicas = [controller_id, *others] if is_controller else [*others, controller_id]
    create_topic(cluster.bootstrap, topic, assignment=[replicas])
    wait_until_in_sync(cluster.bootstrap, [topic])
    return replicas[0]


class ManyLeaders:
    name = "many-leaders"
    server_names = ON_ZOOKEEPER

    def __init__(self, *, partition_count: int = 2_000, topic_count: int = 4) -> None:
        self.partition_count, self.topic_count = partition_count, topic_count
        what = f"one of 3 brokers × {partition_count:,} partitions dies"
        self.about = f"{what} (RF 3, kill -9): until both others name a living leader for all (Metadata)"
        self.rows = (
            Row("moved_s", f"{what}, until all leaders have moved", "s", "lower", 1.0, sides=SIDES),
            Row(
                "elect_ms", "… of it, after ZooKeeper has ended the session", "ms", "lower", None, sides=SIDES
            ),
        )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=0)

    def run(self, context: Context) -> Sample:
        topics = [f"many-{number}" for number in range(self.topic_count)]
        with ExitStack() as stack:
            directory = stack.enter_context(context.fresh_directory())
            zookeeper = stack.enter_context(ZooKeeperServer(directory / "zookeeper"))
            cluster = stack.enter_context(start_cluster(context.kind, directory, zookeeper=zookeeper))
            sessions = stack.enter_context(closing(SessionWatch(zookeeper.address)))
            for topic in topics:
                create_topic(cluster.bootstrap, topic, partitions=self.partition_count // self.topic_count)
            wait_until_in_sync(cluster.bootstrap, topics, timeout_s=FAILOVER_TIMEOUT_S)
            controller_id = describe(cluster.bootstrap).controller_id
            victim, other = (each for each in cluster.broker_ids if each != controller_id)
            watched = [stack.enter_context(connect(cluster.port(each))) for each in (controller_id, other)]
            session = sessions.ended(victim)
            killed_at = time.monotonic()
            cluster.kill(victim)
            # Nobody is asked before there can be news: an answer of this size is work.
            expired_at = session.wait(timeout_s=FAILOVER_TIMEOUT_S)
            moved_at = wait_until_moved(watched, victim, self.partition_count)
        return Sample({"moved_s": moved_at - killed_at, "elect_ms": (moved_at - expired_at) * 1000})


def wait_until_moved(sockets: Sequence[socket.socket], victim: int, partition_count: int) -> float:
    """time.monotonic() of when each of them named a leader other than the victim for every partition."""
    deadline = time.monotonic() + FAILOVER_TIMEOUT_S
    waiting = list(sockets)
    while waiting:
        leaders = ask_metadata(waiting[0], None).leaders.values()
        if len(leaders) >= partition_count and all(leader not in (victim, -1) for leader in leaders):
            waiting.pop(0)
        elif time.monotonic() > deadline:
            raise Refused(f"not all leaders have moved within {FAILOVER_TIMEOUT_S:g} s")
        else:
            time.sleep(MANY_POLL_INTERVAL_S)
    return time.monotonic()
