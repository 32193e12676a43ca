"""A user with a quota: how near its rate comes to it, and what its neighbour notices."""

from typing import Any

from bench.context import Context
from bench.measure import MEGABYTE, Row, Sample, Scale
from bench.secured import Secured, secured
from bench.topics import temporary_topic
from bench.workloads.form import STORING_SERVERS

QUOTA_MB = 5
RECORD_BYTES = 1000
LIMITED, NEIGHBOUR = "limited", "neighbour"
LOGIN = "SASL_PLAINTEXT"
RATE = 500
WARM_UP_S = 2
BURST_S = 12
"""A quota counts in eleven windows of a second: who was quiet has that much at once. Spent before its rate is measured."""
TOLERANCE = 10


class Quotas:
    name = "quotas"
    server_names = STORING_SERVERS
    about = (
        f"a user with a quota of {QUOTA_MB} MB/s produces, then consumes as fast as it can (librdkafka), beside another "
        f"user's producer of {RATE}/s"
    )
    rows = (
        Row("produce", f"produce with a quota of {QUOTA_MB} MB/s", "MB/s", "higher", None),
        Row("produce_off_by", "… off the quota by", "%", "lower", TOLERANCE, bounds="value"),
        Row("produce_with_burst", "… from the first record on, with the burst", "MB/s", "higher", None),
        Row("consume", f"consume with a quota of {QUOTA_MB} MB/s", "MB/s", "higher", None),
        Row("consume_off_by", "… off the quota by", "%", "lower", TOLERANCE, bounds="value"),
        Row("disconnects", "… disconnects and errors of both", "", "lower", 0, bounds="value"),
        Row("quiet_p99_ms", f"a neighbour's produce at {RATE}/s, alone, p99", "ms", "lower", None),
        Row("beside_p99_ms", "… beside the limited producer, p99", "ms", "lower", None),
        Row("beside_to_quiet", "… beside it ÷ alone", "×", "lower", 2, bounds="value"),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1)

    def run(self, context: Context) -> Sample:
        seconds = context.scale.pick(full=30, quick=10)
        values: dict[str, float] = {}
        with secured(context) as server:
            server.make_users(LIMITED, NEIGHBOUR)
            server.warm_up(LOGIN, NEIGHBOUR)
            with (
                temporary_topic(server.server, "limited-6p", partition_count=6) as topic,
                temporary_topic(server.server, "neighbour-1p", partition_count=1) as others,
            ):
                self._fill(server, topic, seconds)
                server.limit(
                    LIMITED, producer_byte_rate=QUOTA_MB * MEGABYTE, consumer_byte_rate=QUOTA_MB * MEGABYTE
                )
                paced(server, others, seconds=3)
                values["quiet_p99_ms"] = paced(server, others, seconds=max(5, seconds - 10))
                heard = 0
                for part in ("produce", "consume"):
                    options: dict[str, Any] = {
                        "part": part,
                        "topic": topic,
                        "warm_up_s": BURST_S,
                        "seconds": seconds,
                        "record_bytes": RECORD_BYTES,
                    }
                    with context.background_client(
                        "limited",
                        server=server.server,
                        client=server.librdkafka(LOGIN, LIMITED),
                        **options,
                    ) as limited:
                        if part == "produce":
                            values["beside_p99_ms"] = paced(server, others, seconds=max(5, seconds - 10))
                        done = limited.result()
                    values[part] = done["bytes"] / MEGABYTE / seconds
                    if part == "produce":
                        values["produce_with_burst"] = done["bytes_with_burst"] / MEGABYTE / seconds
                    values[f"{part}_off_by"] = abs(values[part] / QUOTA_MB - 1) * 100
                    heard += done["disconnects"] + done["errors"]
        values["disconnects"] = heard
        values["beside_to_quiet"] = values["beside_p99_ms"] / values["quiet_p99_ms"]
        return Sample(values)

    def _fill(self, server: Secured, topic: str, seconds: int) -> None:
        """Without a limit: twice what may be consumed."""
        server.context.client(
            "produce",
            server=server.server,
            topic=topic,
            record_count=2 * QUOTA_MB * MEGABYTE * seconds // RECORD_BYTES,
            record_bytes=RECORD_BYTES,
            client=server.librdkafka(LOGIN, NEIGHBOUR),
        )


def paced(server: Secured, topic: str, *, seconds: int) -> float:
    """The 99th percentile, in ms."""
    options: dict[str, Any] = {"topic": topic, "rate": RATE, "warm_up_s": WARM_UP_S, "seconds": seconds}
    client = server.librdkafka(LOGIN, NEIGHBOUR)
    result = server.context.client("paced", server=server.server, client=client, **options)
    return float(result["p99_ms"])
