"""The group coordinator: many groups joining at once, one large group rebalancing, commits, and its start."""

from typing import Any

from bench.clients.fill_offsets import group_name
from bench.context import Context
from bench.log_servers import create_topics, start_server
from bench.measure import MEGABYTE, Row, Sample, Scale
from bench.offsets import last_groups_in_every_partition, wait_until_loaded
from bench.workloads.form import STORING_SERVERS, cpu_time

# With the delay, which gathers the first members of a group, both servers would only be seen to wait.
OPTIONS = {"group.initial.rebalance.delay.ms": "0"}
SAME_OPTIONS = "group.initial.rebalance.delay.ms=0"
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0


def run_members(context: Context, program: str, **options: int) -> tuple[dict[str, Any], float]:
    """What a client program says of its groups on a server of their own, and the server's CPU seconds meanwhile."""
    with (
        context.fresh_directory() as directory,
        start_server(context.kind, directory, options=OPTIONS) as server,
    ):
        context.settle()
        with cpu_time(server) as spent:
            result = context.client(program, server=server, **options)
    return result, spent.seconds


class JoinGroups:
    name = "group-join"
    server_names = STORING_SERVERS

    def __init__(
        self, *, group_count: int = 1_000, group_size: int = 3, passes: int = 3, warm_up_passes: int = 2
    ) -> None:
        self.group_count = group_count
        self.group_size = group_size
        self.passes = passes
        self.warm_up_passes = warm_up_passes
        what = f"{group_count:,} groups × {group_size} members join at once"
        self.about = (
            f"{what}, classic protocol, bare sockets, until each group is whole in one generation; {SAME_OPTIONS}, "
            f"heartbeat 100 ms; median of {passes} passes after {warm_up_passes} to warm up"
        )
        self.rows = (
            Row("seconds", f"{what}, until all are stable", "s", "lower", 0.7, "1,000 members"),
            Row("first_pass_s", f"{what}, the first after a start", "s", "lower", None),
        )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=0)

    def run(self, context: Context) -> Sample:
        result, cpu_seconds = run_members(
            context,
            "join_groups",
            group_count=self.group_count,
            group_size=self.group_size,
            warm_up_passes=self.warm_up_passes,
            passes=self.passes,
        )
        # Of all passes, with the first, with connecting and with leaving.
        joined = self.group_count * self.group_size * (self.passes + self.warm_up_passes)
        return Sample(
            {key: result[key] for key in ("seconds", "first_pass_s")},
            {"seconds": cpu_seconds / joined * 1000},
            {key: result[key] for key in ("request_count", "client_cpu_s")},
        )


class RebalanceGroup:
    name = "group-rebalance"
    server_names = STORING_SERVERS

    def __init__(
        self, *, member_count: int = 100, rebalances: int = 40, warm_up_rebalances: int = 20
    ) -> None:
        self.member_count = member_count
        self.rebalances = rebalances
        self.warm_up_rebalances = warm_up_rebalances
        what = f"one of {member_count} members leaves a group"
        self.about = (
            f"{what}, classic protocol, bare sockets: LeaveGroup → heartbeats of the others, sent at once → all have "
            f"their new assignment; {SAME_OPTIONS}; median of {rebalances} after {warm_up_rebalances} to warm up"
        )
        self.rows = (
            Row("p50_ms", f"{what}, until all are stable", "ms", "lower", 1.0, "rebalance"),
            Row("p99_ms", f"{what}, until all are stable, p99", "ms", "lower", None),
        )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=0)

    def run(self, context: Context) -> Sample:
        result, cpu_seconds = run_members(
            context,
            "rebalance_group",
            member_count=self.member_count,
            rebalances=self.rebalances,
            warm_up_rebalances=self.warm_up_rebalances,
        )
        # Each leaving is followed by a coming back, which is a rebalance, too.
        count = 2 * (self.rebalances + self.warm_up_rebalances)
        return Sample(
            {key: result[key] for key in ("p50_ms", "p99_ms")},
            {"p50_ms": cpu_seconds / count},
            {"client_cpu_ms": result["client_cpu_ms"]},
        )


class CommitOffsets:
    server_names = STORING_SERVERS
    warm_up_s = 3.0  # a JVM that has seen a thousand commits is still compiling

    def __init__(self, *, partition_count: int, client_count: int = 16) -> None:
        self.partition_count = partition_count
        self.client_count = client_count
        self.name = f"offset-commit-{partition_count}p"
        what = f"OffsetCommit of {partition_count} partition{'s' if partition_count > 1 else ''}"
        label = f"{what}, {client_count} clients"
        self.about = (
            f"{label}: bare sockets, each the only member of its group, each waits for its answer; version 9"
        )
        self.rows = (
            Row("commits_per_s", label, "commits/s", "higher", 1.0, "1,000 commits"),
            Row("p99_ms", f"{label}, p99", "ms", "lower", None),
        )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1 if self.partition_count == 1 else 0)

    def run(self, context: Context) -> Sample:
        seconds = context.scale.pick(full=3, quick=1)
        server = context.server()
        with context.topic(self.name, partition_count=self.partition_count) as topic:
            context.settle()
            with cpu_time(server) as spent:
                result = context.client(
                    "commit_offsets",
                    topic=topic,
                    partition_count=self.partition_count,
                    client_count=self.client_count,
                    warm_up_s=self.warm_up_s,
                    seconds=seconds,
                )
        # The CPU time includes the warm-up, which ran at about the same rate.
        commit_count = result["commits_per_s"] * (seconds + self.warm_up_s)
        return Sample(
            {key: result[key] for key in ("commits_per_s", "p99_ms")},
            {"commits_per_s": spent.seconds / commit_count * 1000},
            {key: result[key] for key in ("p50_ms", "client_cpu_share")},
        )


class LoadGroups:
    name = "group-load"
    server_names = STORING_SERVERS
    topic = "committed"

    def __init__(self, *, group_count: int = 10_000, partition_count: int = 10) -> None:
        self.group_count = group_count
        self.partition_count = partition_count
        what = f"{group_count:,} groups × {partition_count} partitions"
        self.about = (
            f"offsets of {what}, committed once, stopped cleanly: process created → the last group in each partition "
            "of __consumer_offsets has its offsets (OffsetFetch, bare socket, asked again each 5 ms)"
        )
        self.rows = (
            Row("seconds", f"start with the state of {what}", "s", "lower", 0.7, "start"),
            Row("resident_mb", f"resident memory with the state of {what}", "MB", "lower", None),
        )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=2, quick=0)

    def run(self, context: Context) -> Sample:
        sizes = {"group_count": self.group_count, "partition_count": self.partition_count}
        last_groups = last_groups_in_every_partition(group_name(number) for number in range(self.group_count))
        expected = {name: [int(name.rpartition("-")[2])] * self.partition_count for name in last_groups}
        with context.fresh_directory() as directory:
            server = start_server(context.kind, directory)
            try:
                create_topics(server, {self.topic: self.partition_count})
                filled = context.client("fill_offsets", server=server, topic=self.topic, check=False, **sizes)
            finally:
                server.stop(timeout_s=STOP_TIMEOUT_S)
            context.settle()
            server = start_server(context.kind, directory, wait_until_ready=False)
            try:
                loaded_at = wait_until_loaded(server.bootstrap, expected, timeout_s=START_TIMEOUT_S)
                seconds = loaded_at - server.process.started_at
                usage = server.usage()
                context.client("fill_offsets", server=server, topic=self.topic, check=True, **sizes)
            finally:
                server.stop(timeout_s=STOP_TIMEOUT_S)
        return Sample(
            {"seconds": seconds, "resident_mb": usage.resident_bytes / MEGABYTE},
            {"seconds": usage.cpu_seconds},
            {"fill_s": filled["seconds"]},
        )
