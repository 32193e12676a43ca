"""Samples into a table for people (RESULTS.md) and one for programs (results.json)."""

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.measure import Row, Sample, Scale
from bench.runner import Results
from bench.servers import (
    CONNECT,
    CONNECTOR,
    KAFKA,
    KAFKA_CONNECT,
    KAFKA_STREAMS,
    KARAPACE,
    NULL,
    PENSTOCK,
    PENSTOCK_3,
    SERVER_KINDS,
    SERVICES,
    SPARK,
    STREAMS,
)
from bench.workloads.form import Workload

SECURITY = ("tls-java", "tls-librdkafka", "scram-logins", "acls", "quotas", "idle-tls")
"""Workloads with a section of their own."""

NOTES = """\
Medians of the rounds. Each round (in a quick run: the whole run) starts every server on a fresh directory, warms
it up, and gives it the same client as the others, in turns. Only one server is under load at a time, the others
idle. Client and server share the machine, so a client's own cost limits both: the null broker, which
acknowledges and keeps nothing, shows where that limit is. CPU is the server's own user and system time: per GB
(10⁹ bytes of values), per 1,000 requests or records, or per start. *Java* is Apache's ProducerPerformance
(acks=all, idempotent; batch.size 65,536 for 1,000 B; the first fifth of the records is warm-up) and
ConsumerPerformance (time spent joining the group left out). *librdkafka* is confluent-kafka with acks=all. A
synchronous producer waits for each acknowledgement before it sends the next record; *raw sockets* is the same
without a client library.

The rows about the log (compaction, recovery, replay, many partitions) put the same segment files into the stopped
servers' directories. *Compaction* is from the change of cleanup.policy until the cleaner's checkpoint says that it is
done, on servers whose cleaner is warm and looks ten times a second; its CPU includes Penstock's worker process.
*Recovery* is, for Penstock, the time to the first acknowledged record less that of an empty log, and for Apache Kafka
only what its log says that loading took. A target on the *value* bounds Penstock's own figure, not its ratio to
Apache Kafka's.

The rows about groups are of bare sockets in one process, which speak the classic protocol as a consumer does (JoinGroup 9,
SyncGroup 5, OffsetCommit 9) and cost less than a client library. Both servers have group.initial.rebalance.delay.ms=0 where
groups are joined. Members that *join at once* send a heartbeat each 100 ms until their group is whole; their CPU counts
connecting, all passes and leaving. When one *leaves*, the others send their heartbeat at once. *State of groups* is
__consumer_offsets as the server wrote it from one OffsetCommit per group; the start ends when the last group in each of its
partitions can be fetched.
"""

SPARK_NOTES = """\
Spark's own connector, `format("kafka")`, beside `penstock.spark`: the same Spark, the same Penstock broker, one after the
other in every round, each in a process of its own. The connector runs in a plain session on `local[2]` with its jars and no
other setting; *tuned* is with fetch.max.wait.ms=10, max.partition.fetch.bytes of 8 MB and max.poll.records=5,000. Ours runs in
`penstock.spark.session()` on `local[2]`; the real-time tier in `session(real_time=True)`, where slots are threads and more than
the two cores. CPU is of Spark's driver, its JVM and its Python workers together.

Times of streams are from the moment a record is given to a producer until an independent consumer has it, on topics of one
partition. Both sides read from the earliest offset; micro-batches follow each other without a pause, the real-time tier has a
trigger of 60 seconds. Where records are counted, every record has another key, so that each gives a row at once, and the
connector's session has 2 shuffle partitions and not 200, which would be no contest. The *sink* writes rows that Spark has in
memory: the connector's with its guarantee, at least once, ours in transactions. The *Arrow UDF over fastavro* has our source and
our sink, with bytes. *Session to the first row* begins when the
program has imported Spark and asks for a session, and ends when the first of 1,000 waiting records has been copied; ours has its
class archive (`python -m penstock.spark.archive`).
"""

SERVICE_NOTES = """\
Karapace's schema registry and REST proxy beside Penstock's, each started as its users start it (Karapace with the log level
WARNING), alone, in front of the same Penstock broker. The client is one process with 16 connections, each with one request
under way; after a part of the time to warm up, requests are counted until the time is up, and each must be answered with 200.
The registry has 200 subjects with a version each, an Avro record of ten fields. A *known* schema is registered again. The
*check* is of a schema with one more field against the newest version. *Start* is from the creation of the process until a schema
by its id comes back, the last of 10,000 in the topic. Records that went through a proxy are counted in the topic.
"""

STREAM_NOTES = """\
Kafka Streams in Java beside `penstock.streams` on Spark's long tasks: the same plans, the same Penstock broker, one after the
other in every round, each in a process of its own with two threads or two tasks. Keys and values are texts. Kafka Streams has
its default settings, but no cache, which would leave out changes of a count that ours writes; its state is in RocksDB. It
compiles while it runs, so the first third of the records is not counted. The *rate* is of records that come in, by what has
arrived in the topic of the results; half of what is filtered passes. CPU is of the whole program, for ours with Spark's JVM and
the Python workers. The table's records are older than the stream's.

Times are from the moment a record is given to a producer until an independent consumer has its result, at 1,000 records/s, with
another key for each, from a topic of one partition; *exactly once* is read by a consumer of what is committed, and both commit
as often as is their default. A producer of Kafka Streams has linger.ms=100, its default there. Its filter and map are
functions in Java: their row stands beside the Python function, too. In the rows with a target on the value it is Penstock's own
p50 and p99 that are bounded.

*Pull queries* are of the SQL server's `/query`, SELECT * by key from a table of 1,000 rows: from one connection, and from 16 in
four processes. The *first result* of a stateless CREATE STREAM … AS SELECT is timed from before the request is sent; another
query of the server runs by then. Of the thirty queries 28 have 20 records/s each. *Memory* is the proportional set size of the
server, Spark's JVM and the workers.
"""

CONNECT_NOTES = """\
Apache's Connect beside ours, each started as its users start it (Apache's with the heap of its script, 256 MB to 2 GB), in
front of the same Penstock broker, one after the other. Files and the source at a fixed rate run in standalone workers, whose
tasks are threads; connectors, converters and transforms are the same ones by name. Both have their defaults; a producer of
Kafka's waits for company for 5 ms, ours for 1 ms. The *source* at 1,000 records/s is a class of the bench's own on either
side, and its transforms are HoistField, InsertField and RegexRouter, with JSON behind them. Times are from when a record was
due until an independent consumer has it.

*Idle* connectors are file sources of empty files; memory is the proportional set size of the worker with all its processes,
for ours with Spark's JVM. Of two workers one is *killed*, for ours the one that leads. It counts until the REST API of the
other one shows all connectors and tasks running there. Apache's has scheduled.rebalance.max.delay.ms=0; by default it waits
for five minutes. A target on the *value* bounds our own figure.

The *mirror* copies a filled topic to a second broker: `penstock mirror` beside MirrorMaker 2, each a process with the same
mm2.properties. CPU is that of this process. The *JDBC* sink has Debezium's beside it, with batches of 3,000 as ours has;
PostgreSQL runs on this machine, too. *Parquet* files and the *lake* table are written by two tasks, each a process, and stand
alone.
"""

CLUSTER_NOTES = """\
Three brokers on this one machine, ours beside three of Apache Kafka, which have the heap of their start script (1 GiB each)
and the values that Apache ships; 3.9.1 in ZooKeeper mode, 4.3.1 as three nodes that are broker and controller at once. Both
ZooKeeper modes have one ZooKeeper server of the same kind, with a tick of 250 ms, to which a session's end is rounded up.
CPU is that of the three brokers together. *Failover* is the longest time between two acknowledgements of a producer on a
bare socket (acks=all, RF 3, one record at a time, all brokers asked for the leader each 5 ms when it is gone). The time
until ZooKeeper ends the session of a killed broker depends on when it last heard of it, so single figures vary by seconds;
what comes after it does not. Leaders *have moved* when both other brokers name a living one for every partition. A rolling
restart stops, starts and waits for one broker after the other; *errors* are deliveries that failed, errors in place of
records, failed commits and acknowledged records that never came.
"""

SECURITY_NOTES = """\
Each workload starts both servers with a plain listener, one with TLS and others with logins, all alike: keys on P-256, TLS 1.3
only, SCRAM-SHA-512 with 4,096 iterations. The clients are Java's and librdkafka's as above. *Logins* are of bare sockets in one
process: connect, handshake, the exchange, close; the password is salted once per user, as that is the client's work. Beside the
other producer the clients that log in are nice, so that it waits for the broker and not for a core. *Access rules* run the same
client in turns on two servers, with 1,000 rules and without an authorizer; *with ÷ without* is the median of the pairs. A *quota*
counts bytes of values. A producer has produced for twelve seconds before its rate is measured, since Kafka's windows let who was
quiet send the quota of eleven seconds at once; *with the burst* counts as long, from its first record on. Idle connections
have asked for the versions once; their memory is what the server's resident memory grew by, after 100 others that came and went.
"""


def median_of(samples: Sequence[Sample], pick: Callable[[Sample], float | None]) -> float | None:
    found = [value for value in map(pick, samples) if value is not None]
    return statistics.median(found) if found else None


def summarise(workload: Workload, row: Row, by_server: Mapping[str, Sequence[Sample]]) -> dict[str, Any]:
    """One row: medians by server, CPU by server, and the ratio of ours to theirs."""
    values = {name: median_of(each, lambda s: s.values.get(row.key)) for name, each in by_server.items()}
    cpu = {name: median_of(each, lambda s: s.cpu_seconds.get(row.key)) for name, each in by_server.items()}
    theirs, ours = (values.get(side) for side in row.sides)
    ratio = ours / theirs if theirs and ours is not None else None
    return {
        "workload": workload.name,
        "row": row.key,
        "label": row.label,
        "unit": row.unit,
        "better": row.better,
        "sides": row.sides,
        "values": values,
        "rounds": {name: [s.values.get(row.key) for s in each] for name, each in by_server.items()},
        "cpu_seconds": cpu,
        "cpu_per": row.cpu_per,
        "ratio": ratio,
        "target": row.target,
        "bounds": row.bounds,
        "met": row.is_met(ratio if row.bounds == "ratio" else ours),
    }


def summarise_all(workloads: Sequence[Workload], results: Results, measured: str) -> list[dict[str, Any]]:
    return [
        {**summarise(workload, row, results.samples.get(workload.name, {})), "measured": measured}
        for workload in workloads
        for row in workload.rows
        if results.samples.get(workload.name)
    ]


def merge(
    order: Sequence[Workload], earlier: Sequence[dict[str, Any]], now: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The lines of two runs, in the order of the workloads; what was measured now replaces all of its workload."""
    fresh = {line["workload"] for line in now}
    names = [workload.name for workload in order]
    kept = [line for line in earlier if line["workload"] in names and line["workload"] not in fresh]
    return sorted([*kept, *now], key=lambda line: names.index(line["workload"]))


def number(value: float | None) -> str:
    """Three or more significant digits: 0.0912, 1.53, 24.1, 1,234."""
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3g}"


def table_line(line: Mapping[str, Any]) -> str:
    values, cpu = line["values"], line["cpu_seconds"]
    target = line["target"]
    unit = "×" if line["bounds"] == "ratio" else f"{line['unit']} (value)"
    wanted = "" if target is None else f"{'≥' if line['better'] == 'higher' else '≤'} {target:g} {unit}"
    met = {None: "", True: "yes", False: "**no**"}[line["met"]]
    per = line["cpu_per"]
    theirs, ours = sides_of(line)
    spent = f"{number(cpu.get(theirs))} / {number(cpu.get(ours))} s per {per}" if per else ""
    ratio = "–" if line["ratio"] is None else f"{line['ratio']:.{2 if line['ratio'] >= 0.1 else 3}f} ×"
    cells = [
        f"{line['label']}, {line['unit']}",
        *(number(values.get(theirs)), number(values.get(ours)), ratio, wanted, met, spent),
    ]
    if ours == PENSTOCK:
        cells.append(number(values.get(NULL)) if values.get(NULL) is not None else "")
    return "| " + " | ".join(cells) + " |"


def sides_of(line: Mapping[str, Any]) -> tuple[str, str]:
    theirs, ours = line.get("sides", (KAFKA, PENSTOCK))
    return theirs, ours


def table(lines: Sequence[Mapping[str, Any]], theirs: str, ours: str, *more: str) -> list[str]:
    """Nothing at all where there is no line."""
    if not lines:
        return []
    head = ["", theirs, ours, "ratio", "target", "met", f"CPU {theirs} / {ours}", *more]
    rule = ["---", "---:", "---:", "---:", "---", "---", "---", *("---:" for _ in more)]
    return [
        "| " + " | ".join(head).strip() + " |",
        "|" + "|".join(rule) + "|",
        *(table_line(line) for line in lines),
        "",
    ]


def measured_lines(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which workloads were measured when, where the table comes from more than one run."""
    runs: dict[str, dict[str, None]] = {}
    for line in lines:
        runs.setdefault(line["measured"], {})[line["workload"]] = None
    return [f"- measured {date}: {', '.join(names)}" for date, names in runs.items()] if len(runs) > 1 else []


def markdown(
    lines: Sequence[Mapping[str, Any]], machine: Mapping[str, str], results: Results, scale: Scale
) -> str:
    failures, left_out = results.failures, results.left_out
    labels = {name: kind.label for name, kind in SERVER_KINDS.items()}
    rounds = max((len(each) for line in lines for each in line["rounds"].values()), default=0)
    parts = ["# Penstock beside Apache Kafka", ""]
    if scale.quick:
        parts += ["**A quick run**: less data, fewer workloads; for noticing, not for quoting.", ""]
    parts += [f"Written by `make bench`; up to {rounds} rounds.", ""]
    if left_out:
        parts += [
            f"Time was up before {left_out} steps of the later rounds: their medians are of fewer rounds.",
            "",
        ]
    parts += [f"- {key}: {value}" for key, value in machine.items()]
    parts += measured_lines(lines)
    targets = [line["met"] for line in lines if line["met"] is not None]
    parts += ["", f"Targets met: {sum(targets)} of {len(targets)}.", ""]
    of_security = [line for line in lines if line["workload"] in SECURITY]
    of_servers = [line for line in lines if sides_of(line)[1] == PENSTOCK and line not in of_security]
    of_spark = [line for line in lines if sides_of(line)[1] == SPARK]
    if of_servers:
        parts += [*table(of_servers, labels[KAFKA], labels[PENSTOCK], labels[NULL]), NOTES]
    if of_security:
        columns = (labels[KAFKA], labels[PENSTOCK], labels[NULL])
        parts += ["## Security", "", *table(of_security, *columns), SECURITY_NOTES]
    if of_spark:
        parts += ["## Topics in Spark", "", *table(of_spark, labels[CONNECTOR], labels[SPARK]), SPARK_NOTES]
    of_services = [line for line in lines if sides_of(line)[1] == SERVICES]
    if of_services:
        rows = table(of_services, labels[KARAPACE], labels[PENSTOCK])
        parts += ["## Schema registry and REST proxy", "", *rows, SERVICE_NOTES]
    of_streams = [line for line in lines if sides_of(line)[1] == STREAMS]
    if of_streams:
        rows = table(of_streams, labels[KAFKA_STREAMS], labels[STREAMS])
        parts += ["## Streams", "", *rows, STREAM_NOTES]
    of_connect = [line for line in lines if sides_of(line)[1] == CONNECT]
    if of_connect:
        rows = table(of_connect, labels[KAFKA_CONNECT], labels[CONNECT])
        parts += ["## Connect", "", *rows, CONNECT_NOTES]
    of_clusters = [line for line in lines if sides_of(line)[1] == PENSTOCK_3]
    if of_clusters:
        heads = ("3 × Apache Kafka", labels[PENSTOCK_3])
        parts += ["## Clusters of three brokers", "", *table(of_clusters, *heads), CLUSTER_NOTES]
    if failures:
        parts += ["## Failed", "", *(f"- {failure.splitlines()[0]}" for failure in failures), ""]
    return "\n".join(parts)


def read_results(directory: Path) -> dict[str, Any]:
    """What an earlier run has written there; nothing where there was none."""
    path = directory / "results.json"
    return json.loads(path.read_text()) if path.exists() else {"rows": [], "extra": {}}


def write_results(
    directory: Path,
    text: str,
    lines: Sequence[Mapping[str, Any]],
    machine: Mapping[str, str],
    results: Results,
    *,
    earlier_extra: Mapping[str, Any],
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "RESULTS.md").write_text(text)
    shown = {line["workload"] for line in lines}
    extras = {workload: extra for workload, extra in earlier_extra.items() if workload in shown} | {
        workload: {name: [dict(sample.extra) for sample in each] for name, each in by_server.items()}
        for workload, by_server in results.samples.items()
    }
    everything = {"machine": machine, "rows": lines, "extra": extras, "failures": results.failures}
    (directory / "results.json").write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n")
