"""What 1,000 access rules cost: the same client with them and without, in turns on two servers."""

import statistics
from contextlib import ExitStack

from bench.context import Context
from bench.measure import GIGABYTE, MEGABYTE, Row, Sample, Scale
from bench.secured import ACCESS_RULES, Secured, rule
from bench.topics import temporary_topic
from bench.workloads.form import STORING_SERVERS, cpu_time
from penstock.model.acl import Operation, ResourceType
from penstock.wire.messages.create_acls import AclCreation

RULE_COUNT = 1000
RECORD_BYTES = 1000
PARTITION_COUNT = 6
USER = "ana"
TOPIC = "guarded-6p"
LOGIN = "SASL_PLAINTEXT"
PARTS = ("produce", "consume")


class AccessRules:
    name = "acls"
    server_names = STORING_SERVERS
    about = (
        f"librdkafka produces and consumes {RECORD_BYTES:,} B with {RULE_COUNT:,} access rules and without an authorizer, in "
        "turns on two servers"
    )
    rows = tuple(
        row
        for part in PARTS
        for row in (
            Row(
                f"{part}_off", f"librdkafka {part} 1,000 B without access rules", "MB/s", "higher", None, "GB"
            ),
            Row(f"{part}_on", f"… with {RULE_COUNT:,} of them", "MB/s", "higher", None, "GB"),
            Row(f"{part}_on_to_off", "… with ÷ without", "×", "higher", 0.97, bounds="value"),
        )
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1)

    def run(self, context: Context) -> Sample:
        total_bytes = context.scale.pick(full=GIGABYTE // 2, quick=GIGABYTE // 5)
        turns = context.scale.pick(full=5, quick=2)
        rates: dict[str, list[float]] = {}
        cpu: dict[str, list[float]] = {}
        with context.fresh_directory() as directory, ExitStack() as opened:
            servers: dict[str, Secured] = {}
            for which, options in (("off", {}), ("on", ACCESS_RULES)):
                servers[which] = Secured(context, directory / which, options=options)
                opened.callback(servers[which].server.stop)
            for server in servers.values():
                server.make_users(USER)
            servers["on"].allow(rules())
            for server in servers.values():
                measure(server, total_bytes, {}, {}, "")
            for turn in range(turns):
                for which in ("off", "on") if turn % 2 else ("on", "off"):
                    context.settle()
                    measure(servers[which], total_bytes, rates, cpu, which)
        values = {key: statistics.median(each) for key, each in rates.items()}
        for part in PARTS:
            pairs = zip(rates[f"{part}_on"], rates[f"{part}_off"], strict=True)
            values[f"{part}_on_to_off"] = statistics.median(on / off for on, off in pairs)
        return Sample(values, {key: statistics.median(each) for key, each in cpu.items()})


def measure(
    server: Secured, total_bytes: int, rates: dict[str, list[float]], cpu: dict[str, list[float]], which: str
) -> None:
    with temporary_topic(server.server, TOPIC, partition_count=PARTITION_COUNT) as topic:
        for part in PARTS:
            with cpu_time(server.server) as spent:
                result = server.context.client(
                    part,
                    server=server.server,
                    topic=topic,
                    record_count=total_bytes // RECORD_BYTES,
                    record_bytes=RECORD_BYTES,
                    client=server.librdkafka(LOGIN, USER),
                )
            rates.setdefault(f"{part}_{which}", []).append(total_bytes / MEGABYTE / result["seconds"])
            cpu.setdefault(f"{part}_{which}", []).append(spent.seconds / (total_bytes / GIGABYTE))


def rules() -> list[AclCreation]:
    """What the client needs, by a prefix as a literal name each, among rules of others."""
    own = [
        rule(USER, Operation.READ, ResourceType.TOPIC, "guarded-", prefixed=True),
        rule(USER, Operation.WRITE, ResourceType.TOPIC, TOPIC),
        rule(USER, Operation.READ, ResourceType.GROUP, "*"),
        rule(USER, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, "kafka-cluster"),
    ]
    others = [
        rule(f"user-{number}", Operation.READ, ResourceType.TOPIC, f"guard{number}", prefixed=number % 2 == 0)
        for number in range(RULE_COUNT - len(own))
    ]
    return others + own
