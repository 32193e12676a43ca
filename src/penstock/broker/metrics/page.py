"""The state of a broker as Prometheus' text. Runs in a thread, from a copy.

Names are those that Kafka's MBeans get from the exporters in common use: kafka_<domain>_<type>_<name>, in lower case, with
`_` for what a name may not hold. What Kafka does not have begins with `penstock_`.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest

from penstock import __version__
from penstock.broker.metrics import activity_page, client_page, group_page
from penstock.broker.metrics.facts import BrokerFacts, PartitionFacts
from penstock.broker.metrics.text import (
    CONTENT_TYPE,
    SPELLINGS,
    Family,
    Row,
    Writer,
    escaped,
    label_text,
    one,
)
from penstock.broker.upkeep.cleaner_status import CleanerStatus
from penstock.metadata.session_state import SessionState
from penstock.net.http import Page
from penstock.runtime.loop_lag import BOUNDS_SECONDS, LagCounts, Lags

LINES_AT_ONCE: Final = 1024
RUNNING: Final = 3
"""Kafka's number for a broker that serves."""
_of_the_process = CollectorRegistry()
ProcessCollector(registry=_of_the_process)
PlatformCollector(registry=_of_the_process)
GCCollector(registry=_of_the_process)


def make_page(facts: BrokerFacts) -> Page:
    page = bytearray()
    lines: list[str] = list(_histograms(facts.loop_lag))
    for line in Writer(SPELLINGS[facts.spelling]).write(_families(facts)):
        lines.append(line)
        if len(lines) >= LINES_AT_ONCE:  # joining all of them at once would hold up the loop's thread
            page += "".join(lines).encode()
            lines.clear()
    page += "".join(lines).encode()
    page += generate_latest(_of_the_process)
    return Page(CONTENT_TYPE, bytes(page))


def _families(facts: BrokerFacts) -> Iterator[Family]:
    yield _gauge("penstock_build_info", "The version of Penstock.", [({"version": __version__}, 1)])
    yield from _server(facts)
    if facts.session is not None:
        yield from _session(facts.session)
    yield from _controller(facts)
    yield from activity_page.families(facts)
    yield from _logs(facts)
    yield from _exported(facts)
    if facts.groups is not None:
        yield from group_page.families(facts.groups)
    yield from _cleaner(facts)
    yield from _cleaner_per_partition(facts)
    yield from _clients(facts)
    yield from _quotas(facts)


def _gauge(name: str, documentation: str, rows: Iterable[Row], *, kind: str = "gauge") -> Family:
    return Family(name, documentation, rows, kind)


_one = one


def _histograms(lags: Lags) -> Iterator[str]:
    yield _histogram("lag", "How late the event loop comes to what is due.", lags.whole)
    yield _histogram("own_lag", "How late the event loop comes, without its waits for a core.", lags.own)


def _histogram(name: str, documentation: str, lag: LagCounts) -> str:
    name = f"penstock_event_loop_{name}_seconds"
    bounds = [*(str(bound) for bound in BOUNDS_SECONDS), "+Inf"]
    lines = [f"# HELP {name} {documentation}", f"# TYPE {name} histogram"]
    for bound, count in zip(bounds, accumulate(lag.counts), strict=True):
        lines.append(f'{name}_bucket{{le="{bound}"}} {count}')
    lines += [f"{name}_count {sum(lag.counts)}", f"{name}_sum {lag.sum_seconds!r}"]
    return "\n".join(lines) + "\n"


def _exported(facts: BrokerFacts) -> Iterator[Family]:
    """Under the names of kafka_exporter, and of kafka-lag-exporter: partitions by their leader, brokers by the controller."""
    cluster = facts.cluster
    if cluster.is_controller:
        yield one("kafka_brokers", "Brokers that are there.", cluster.brokers)
        rows: list[Row] = [({"id": str(id), "address": address}, 1) for id, address in cluster.addresses]
        yield _gauge("kafka_broker_info", "Where they are reached.", rows)
    yield _gauge(
        "kafka_topic_partitions",
        "Partitions of the topic; said by the leader of the first.",
        [({"topic": topic}, count) for topic, count in cluster.topics_led],
    )
    led = [held for held in facts.partitions if held.is_leader]
    texts = [f'topic="{escaped(held.topic)}",partition="{held.partition}"}}' for held in led]
    of_each: tuple[tuple[str, str, Callable[[PartitionFacts], float]], ...] = (
        ("current_offset", "The offset after the last committed record.", lambda held: held.high_watermark),
        ("oldest_offset", "The first offset.", lambda held: held.start_offset),
        ("leader", "The id of its leader.", lambda held: held.leader),
        ("replicas", "Its replicas.", lambda held: held.replicas),
        ("in_sync_replica", "Its replicas in sync.", lambda held: held.in_sync),
        (
            "leader_is_preferred",
            "1 when led by the first.",
            lambda held: held.leader == held.preferred_leader,
        ),
        (
            "under_replicated_partition",
            "1 where a replica is not in sync.",
            lambda held: held.in_sync < held.replicas,
        ),
    )
    for name, documentation, value_of in of_each:
        each = zip(texts, led, strict=True)
        rows = [(f"{{{text}", value_of(held)) for text, held in each]
        yield _gauge(f"kafka_topic_partition_{name}", documentation, rows)
    own = f'{{cluster_name="{escaped(cluster.cluster_id)}",'
    for name, documentation, value_of in (
        ("latest_offset", "The offset after the last committed record.", of_each[0][2]),
        ("earliest_offset", "The first offset.", of_each[1][2]),
    ):
        rows = [(f"{own}{text}", value_of(held)) for text, held in zip(texts, led, strict=True)]
        yield _gauge(f"kafka_partition_{name}", documentation, rows)


def _server(facts: BrokerFacts) -> Iterator[Family]:
    held = facts.partitions
    led = [partition for partition in held if partition.is_leader]
    yield _one("kafka_server_kafkaserver_brokerstate", "3: the broker serves.", RUNNING)
    read_bytes, written_bytes = _disk_bytes()
    yield _one("kafka_server_kafkaserver_linux_disk_read_bytes", "Bytes read from disks.", read_bytes)
    yield _one("kafka_server_kafkaserver_linux_disk_write_bytes", "Bytes written to disks.", written_bytes)
    counts = (
        ("partitioncount", "Partitions that this broker holds.", len(held)),
        ("leadercount", "Partitions that this broker leads.", len(led)),
        ("offlinereplicacount", "Replicas in log directories that failed.", facts.offline_replicas),
        (
            "underreplicatedpartitions",
            "Led partitions with replicas that are not in sync.",
            sum(partition.in_sync < partition.replicas for partition in led),
        ),
        (
            "underminisrpartitioncount",
            "Led partitions with fewer replicas in sync than min.insync.replicas.",
            sum(partition.in_sync < partition.min_in_sync for partition in led),
        ),
        (
            "atminisrpartitioncount",
            "Led partitions with just min.insync.replicas replicas in sync.",
            sum(partition.in_sync == partition.min_in_sync for partition in led),
        ),
        ("reassigningpartitions", "Led partitions whose replicas are being moved.", facts.reassigning),
        (
            "produceridcount",
            "Producers whose sequence numbers are remembered.",
            sum(partition.producers for partition in held),
        ),
    )
    for name, documentation, value in counts:
        yield _one(f"kafka_server_replicamanager_{name}", documentation, value)
    yield _gauge(
        "kafka_server_socket_server_metrics_connection_count",
        "Open connections.",
        [({"listener": name, "networkProcessor": "0"}, count) for name, count in facts.connections.items()],
    )


def _session(state: SessionState) -> Iterator[Family]:
    """Kafka's state is a word; here each of its two words is a series."""
    prefix = "kafka_server_sessionexpirelistener"
    yield _gauge(
        f"{prefix}_sessionstate",
        "1 for the state that the session with ZooKeeper is in; while it is CONNECTING, the broker's log says why.",
        [({"state": "CONNECTED"}, not state.trouble), ({"state": "CONNECTING"}, bool(state.trouble))],
    )
    yield _gauge(
        f"{prefix}_zookeeperdisconnects",
        "How often a session lost its connection.",
        [({}, state.disconnects)],
        kind="counter",
    )
    yield _gauge(
        f"{prefix}_zookeeperexpires", "Sessions that ended.", [({}, state.expirations)], kind="counter"
    )


def _controller(facts: BrokerFacts) -> Iterator[Family]:
    cluster = facts.cluster
    counts = (
        ("activecontrollercount", "1 on the controller, 0 elsewhere.", cluster.is_controller),
        ("activebrokercount", "Brokers that are there.", cluster.brokers),
        ("fencedbrokercount", "Brokers that are registered but not let in.", 0),
        ("globaltopiccount", "Topics of the cluster.", cluster.topics),
        ("globalpartitioncount", "Partitions of the cluster.", cluster.partitions),
        ("offlinepartitionscount", "Partitions that nobody can serve.", cluster.offline_partitions),
        (
            "preferredreplicaimbalancecount",
            "Partitions not led by their first replica.",
            cluster.imbalanced_partitions,
        ),
    )
    for name, documentation, value in counts:
        yield _one(f"kafka_controller_kafkacontroller_{name}", documentation, value)


def _logs(facts: BrokerFacts) -> Iterator[Family]:
    yield _one(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "Log directories that failed.",
        len(facts.offline_directories),
    )
    yield _gauge(
        "kafka_log_logmanager_logdirectoryoffline",
        "1 for a log directory that failed.",
        [
            *(({"logDirectory": path}, 0) for path in facts.online_directories),
            *(({"logDirectory": path}, 1) for path in facts.offline_directories),
        ],
    )
    yield _gauge(
        "penstock_log_strays",
        "Logs in the directory that the cluster does not place here: see penstock log strays list.",
        [({"logDirectory": path}, count) for path, count in facts.strays.items()],
    )
    yield _one(
        "penstock_damaged_partitions",
        "Partitions whose log, or whose leader's, cannot be read at some offset.",
        sum(held.is_damaged for held in facts.partitions),
    )
    yield _gauge(
        "penstock_log_damaged",
        "1 for a partition that cannot be read at some offset; the broker's log says where and why.",
        [
            ({"topic": held.topic, "partition": held.partition}, 1)
            for held in facts.partitions
            if held.is_damaged
        ],
    )
    labelled = [
        (label_text({"topic": held.topic, "partition": held.partition}), held) for held in facts.partitions
    ]
    of_each: tuple[tuple[str, str, Callable[[PartitionFacts], float]], ...] = (
        ("kafka_log_log_size", "Bytes of the log.", lambda held: held.size_bytes),
        ("kafka_log_log_logstartoffset", "The first offset of the log.", lambda held: held.start_offset),
        ("kafka_log_log_logendoffset", "The offset that the next record gets.", lambda held: held.end_offset),
        ("kafka_log_log_numlogsegments", "Segments of the log.", lambda held: held.segments),
        ("kafka_cluster_partition_replicascount", "Replicas.", lambda held: held.replicas),
        ("kafka_cluster_partition_insyncreplicascount", "Replicas in sync.", lambda held: held.in_sync),
        (
            "kafka_cluster_partition_underreplicated",
            "1 where a replica is not in sync.",
            lambda held: held.in_sync < held.replicas,
        ),
        (
            "kafka_cluster_partition_underminisr",
            "1 with fewer replicas in sync than min.insync.replicas.",
            lambda held: held.in_sync < held.min_in_sync,
        ),
        (
            "kafka_cluster_partition_atminisr",
            "1 with just min.insync.replicas replicas in sync.",
            lambda held: held.in_sync == held.min_in_sync,
        ),
        (
            "kafka_cluster_partition_laststableoffsetlag",
            "Offsets between the last stable one and the high watermark.",
            lambda held: held.last_stable_offset_lag,
        ),
    )
    for name, documentation, value_of in of_each:
        yield _gauge(name, documentation, ((labels, value_of(held)) for labels, held in labelled))


def _cleaner(facts: BrokerFacts) -> Iterator[Family]:
    """Kafka's own, over all logs."""
    known = [(held, held.cleaner) for held in facts.partitions if held.cleaner is not None]
    ran = [status for _, status in known if status.runs]
    read_bytes = sum(status.bytes_read for status in ran)
    written_bytes = sum(status.bytes_written for status in ran)
    cleaner, choosing = "kafka_log_logcleaner", "kafka_log_logcleanermanager"
    yield _one(
        f"{cleaner}_cleaner_recopy_percent",
        "Bytes that the last cleanings kept, of those that they read.",
        100 * written_bytes / read_bytes if read_bytes else 0,
    )
    yield _one(
        f"{cleaner}_max_clean_time_secs",
        "How long the longest of the last cleanings took.",
        max((status.last_seconds for status in ran), default=0),
    )
    yield _one(
        f"{cleaner}_max_compaction_delay_secs",
        "By how much the most overdue log has passed max.compaction.lag.ms.",
        max((status.overdue_ms for _, status in known), default=0) / 1000,
    )
    yield _one(f"{cleaner}_deadthreadcount", "1 when nothing is compacted any more.", facts.cleaner_is_dead)
    yield _one(
        f"{choosing}_max_dirty_percent",
        "The dirty part of the dirtiest log.",
        100 * max((status.dirty_ratio for _, status in known), default=0),
    )
    yield _one(
        f"{choosing}_time_since_last_run_ms",
        "Since somebody last looked for logs to compact; -1 before the first time.",
        facts.cleaner_looked_ms_ago,
    )
    uncleanable = [held for held, status in known if status.uncleanable_reason]
    paths = [*facts.online_directories, *facts.offline_directories]
    yield _gauge(
        f"{choosing}_uncleanable_partitions_count",
        "Logs that cannot be compacted.",
        [({"logDirectory": path}, sum(held.directory == path for held in uncleanable)) for path in paths],
    )
    yield _gauge(
        f"{choosing}_uncleanable_bytes",
        "Bytes of the logs that cannot be compacted.",
        [
            ({"logDirectory": path}, sum(held.size_bytes for held in uncleanable if held.directory == path))
            for path in paths
        ],
    )


def _cleaner_per_partition(facts: BrokerFacts) -> Iterator[Family]:
    known = [
        ({"topic": held.topic, "partition": held.partition}, held.cleaner)
        for held in facts.partitions
        if held.cleaner is not None
    ]
    ran = [(labels, status) for labels, status in known if status.runs]
    running = [(labels, status) for labels, status in known if status.progress is not None]
    of_last_run: tuple[tuple[str, str, Callable[[CleanerStatus], float]], ...] = (
        ("timestamp_seconds", "When the last cleaning ended.", lambda status: status.last_run_ms / 1000),
        ("duration_seconds", "How long the last cleaning took.", lambda status: status.last_seconds),
        ("read_bytes", "What the last cleaning read.", lambda status: status.bytes_read),
        ("written_bytes", "What the last cleaning kept.", lambda status: status.bytes_written),
        ("records_kept", "Records that the last cleaning kept.", lambda status: status.records_kept),
        ("records_removed", "Records that the last cleaning removed.", lambda status: status.records_removed),
    )
    prefix = "penstock_log_cleaner"
    yield _gauge(
        f"{prefix}_dirty_ratio",
        "The dirty part of the log.",
        [(labels, s.dirty_ratio) for labels, s in known],
    )
    yield _gauge(
        f"{prefix}_cleanable", "1 when a cleaning is due.", [(labels, s.is_cleanable) for labels, s in known]
    )
    yield _gauge(
        f"{prefix}_uncleanable",
        "1 when the log cannot be compacted; the broker's log says why.",
        [(labels, s.uncleanable_reason is not None) for labels, s in known],
    )
    yield _gauge(
        f"{prefix}_progress_ratio",
        "How far the cleaning is that runs now; without one there is no sample.",
        [(labels, s.progress or 0.0) for labels, s in running],
    )
    yield _gauge(
        f"{prefix}_runs",
        "Cleanings since the start.",
        [(labels, s.runs) for labels, s in known],
        kind="counter",
    )
    for name, documentation, value_of in of_last_run:
        rows = ((labels, value_of(status)) for labels, status in ran)
        yield _gauge(f"{prefix}_last_run_{name}", documentation, rows)


def _clients(facts: BrokerFacts) -> Iterator[Family]:
    for name, kind, documentation, value in client_page.counts(facts.client_metrics):
        yield _gauge(name, documentation, [({}, value)], kind=kind)
    for family in client_page.families(facts.client_metrics):
        documentation = f"{family.pushed_name}, as clients pushed it."
        rows = ((dict(labels), value) for labels, value in family.rows.items())
        yield _gauge(family.name, documentation, rows, kind="counter" if family.is_counter else "gauge")


def _quotas(facts: BrokerFacts) -> Iterator[Family]:
    """By Kafka's names of the quotas. Which clients they are is not said: there may be thousands."""
    yield _gauge(
        "penstock_quota_throttled_requests",
        "Requests whose client had to wait for its quota.",
        [({"quota": quota}, count) for quota, count, _ in facts.throttled],
        kind="counter",
    )
    yield _gauge(
        "penstock_quota_throttle_seconds",
        "For how long clients were told to wait for their quotas, together.",
        [({"quota": quota}, total_ms / 1000) for quota, _, total_ms in facts.throttled],
        kind="counter",
    )


def _disk_bytes() -> tuple[int, int]:
    """Read and written by this process, past the page cache; zeros where the kernel does not say."""
    try:
        with open("/proc/self/io", encoding="ascii") as file:
            fields = dict(line.split(": ", 1) for line in file)
        return int(fields["read_bytes"]), int(fields["write_bytes"])
    except (OSError, KeyError, ValueError):
        return 0, 0
