"""Plans over topics, ours on Spark's long tasks beside Kafka Streams in Java: how many records a second, and how soon."""

from dataclasses import dataclass

from bench.context import Context
from bench.measure import Row, Sample, Scale
from bench.servers import KAFKA_STREAMS, STREAMS
from bench.streams import NO_TABLE, THREADS, StreamsProgram, running_program
from bench.workloads.spark_streams import topic_pairs

SIDES = (KAFKA_STREAMS, STREAMS)
AT_LEAST_ONCE, EXACTLY_ONCE = "at_least_once", "exactly_once_v2"
PARTITIONS = 4
KEY_COUNT = 1_000
SKIPPED = 1 / 3  # of the records, to warm up
CLIENT_TIMEOUT_S = 300.0
MILLION = 1_000_000


@dataclass(frozen=True)
class Bulk:
    """A plan, the target of its rate beside theirs, and that of its CPU time beside theirs."""

    kind: str
    label: str
    target: float
    cpu_target: float | None = None
    passed: float = 1.0  # of the records that come


BULKS = (
    Bulk("stateless", "filter and map", 1.0, 1.5, passed=0.5),
    Bulk("count", "count by key", 0.7),
    Bulk("window-count", "count by key and window", 0.7),
    Bulk("join", "stream joined with a table", 0.5),
)


def bulk_rows() -> tuple[Row, ...]:
    rows: list[Row] = []
    for each in BULKS:
        rows.append(
            Row(each.kind, each.label, "records/s", "higher", each.target, "million records", sides=SIDES)
        )
        if each.cpu_target is not None:
            label = f"… {each.label}, CPU"
            rows.append(
                Row(f"{each.kind}_cpu", label, "s per million records", "lower", each.cpu_target, sides=SIDES)
            )
    return tuple(rows)


class StreamThroughput:
    name = "streams-throughput"
    server_names = SIDES
    about = (
        f"records of 100 B with {KEY_COUNT:,} keys that wait in a topic of {PARTITIONS} partitions, {THREADS} tasks or "
        "threads, until the results are in their topic; the first third is not counted"
    )
    rows = bulk_rows()

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1)

    def run(self, context: Context) -> Sample:
        count = context.scale.pick(full=450_000, quick=60_000)
        values: dict[str, float] = {}
        cpu: dict[str, float] = {}
        extra: dict[str, float] = {}
        # The table's records are the older ones: the stream's find theirs.
        table = context.kept_topic(
            "streams-table",
            partition_count=PARTITIONS,
            filler="stream_records",
            key_count=KEY_COUNT,
            is_table=True,
        )
        source = context.kept_topic(
            "streams-records",
            partition_count=PARTITIONS,
            filler="stream_records",
            record_count=count,
            key_count=KEY_COUNT,
            is_table=False,
        )
        with running_program(context) as program:
            for each in BULKS:
                context.settle()
                done = self._drain(context, program, each, count, source, table)
                values[each.kind] = done["read"] / done["seconds"]
                spent = cpu[each.kind] = done["cpu_seconds"] / done["read"] * MILLION
                extra |= {f"{each.kind}_{name}": value for name, value in done.items()}
                if each.cpu_target is not None:
                    values[f"{each.kind}_cpu"] = spent
        return Sample(values, cpu, extra)

    @staticmethod
    def _drain(
        context: Context, program: StreamsProgram, bulk: Bulk, count: int, source: str, table: str
    ) -> dict[str, float]:
        name = f"{bulk.kind}-{context.kind.name}-r{context.round_number}"
        expected = int(count * bulk.passed)
        with (
            context.topic(f"streams-{name}", partition_count=PARTITIONS) as target,
            context.background_client(
                "stream_drain",
                timeout_s=CLIENT_TIMEOUT_S,
                topic=target,
                skipped=int(expected * SKIPPED),
                expected=expected,
                pid=program.pid,
            ) as client,
        ):
            client.said()  # it looks before the first record comes
            with program.plan(
                bulk.kind,
                f"bench-{name}",
                source,
                target,
                table=table if bulk.kind == "join" else NO_TABLE,
                guarantee=AT_LEAST_ONCE,
            ):
                done: dict[str, float] = client.result()
        return done | {"read": done["records"] / bulk.passed}


@dataclass(frozen=True)
class Paced:
    """A plan at a fixed rate. `same_as`: theirs is measured already, since a function in Java is what all of theirs are."""

    key: str
    kind: str
    label: str
    guarantee: str
    same_as: str | None = None
    target: float | None = None  # of our p50 beside theirs; None: our own p50 and p99 are bounded


P50_TARGET_MS, P99_TARGET_MS = 5.0, 30.0
PACED = (
    Paced("stateless", "stateless", "filter and map", AT_LEAST_ONCE),
    Paced("function", "function", "a Python function", AT_LEAST_ONCE, same_as="stateless"),
    Paced("count", "latest", "count by key", AT_LEAST_ONCE),
    Paced("once_stateless", "stateless", "exactly once, filter and map", EXACTLY_ONCE, target=1.0),
    Paced(
        "once_function",
        "function",
        "exactly once, a Python function",
        EXACTLY_ONCE,
        same_as="once_stateless",
        target=1.0,
    ),
    Paced("once_count", "latest", "exactly once, count by key", EXACTLY_ONCE, target=4.0),
)


def paced_rows() -> tuple[Row, ...]:
    rows: list[Row] = []
    for each in PACED:
        p50, p99 = f"{each.key}_p50_ms", f"{each.key}_p99_ms"
        spent = "1,000 records"
        if each.target is None:
            rows.append(
                Row(p50, f"{each.label}, p50", "ms", "lower", P50_TARGET_MS, spent, "value", sides=SIDES)
            )
            rows.append(
                Row(p99, f"{each.label}, p99", "ms", "lower", P99_TARGET_MS, bounds="value", sides=SIDES)
            )
        else:
            rows.append(Row(p50, f"{each.label}, p50", "ms", "lower", each.target, spent, sides=SIDES))
            rows.append(Row(p99, f"{each.label}, p99", "ms", "lower", None, sides=SIDES))
    return tuple(rows)


class StreamLatency:
    name = "streams-latency"
    server_names = SIDES
    rate = 1_000
    warm_up_s = 2.0
    about = f"{rate:,} records/s of 100 B, topic to topic, produce to an independent consumer of what is committed"
    rows = paced_rows()

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1)

    def run(self, context: Context) -> Sample:
        values: dict[str, float] = {}
        cpu: dict[str, float] = {}
        with running_program(context) as program:
            for each in PACED:
                p50, p99 = f"{each.key}_p50_ms", f"{each.key}_p99_ms"
                if each.same_as is not None and context.kind.name == KAFKA_STREAMS:
                    before = f"{each.same_as}_p50_ms"
                    values[p50], values[p99] = values[before], values[f"{each.same_as}_p99_ms"]
                    cpu[p50] = cpu[before]
                    continue
                result = self._measure(context, program, each)
                values[p50], values[p99] = result["p50_ms"], result["p99_ms"]
                cpu[p50] = result["spark_cpu_s"] / result["record_count"] * 1000
        return Sample(values, cpu)

    def _measure(self, context: Context, program: StreamsProgram, paced: Paced) -> dict[str, float]:
        name = f"latency-{paced.key.replace('_', '-')}-{context.kind.name}-r{context.round_number}"
        with topic_pairs(context, name, 1) as topics:
            context.settle()
            ((source, target),) = topics
            with program.plan(paced.kind, f"bench-{name}", source, target, guarantee=paced.guarantee):
                result: dict[str, float] = context.client(
                    "stream_latency",
                    timeout_s=CLIENT_TIMEOUT_S,
                    topics=topics,
                    rate=self.rate,
                    warm_up_s=self.warm_up_s,
                    seconds=context.scale.pick(full=4, quick=2),
                    spark_pid=program.pid,
                )
        return result
