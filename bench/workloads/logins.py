"""Logins over TLS: how many a second, and what other clients notice of them."""

from typing import Any

from bench.context import Context
from bench.measure import Row, Sample, Scale
from bench.secured import PASSWORD, Secured, secured
from bench.topics import temporary_topic
from bench.workloads.form import STORING_SERVERS, cpu_time

USER_COUNT = 50
AT_ONCE = 8
WARM_UP_LOGINS = 500
RATE = 500
WARM_UP_S = 2
BESIDE_THREADS = 4


class ScramLogins:
    name = "scram-logins"
    server_names = STORING_SERVERS
    about = (
        f"1,000 logins with SCRAM-SHA-512 over TLS 1.3, {AT_ONCE} at once; and a producer of {RATE}/s over TLS beside "
        "logins without a pause"
    )
    rows = (
        Row("per_second", "SCRAM-SHA-512 logins over TLS", "1/s", "higher", 1.0, "1,000 logins"),
        Row("quiet_p99_ms", f"produce at {RATE}/s over TLS, quiet, p99", "ms", "lower", None),
        Row("busy_p99_ms", "… during logins without a pause, p99", "ms", "lower", None),
        Row("busy_to_quiet", "… p99 during logins ÷ quiet", "×", "lower", 2, bounds="value"),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1)

    def run(self, context: Context) -> Sample:
        count = context.scale.pick(full=1000, quick=500)
        seconds = context.scale.pick(full=15, quick=5)
        users = [f"user-{number}" for number in range(USER_COUNT)]
        with secured(context) as tls:
            tls.make_users(*users)
            log_in(tls, users, count=WARM_UP_LOGINS)
            with cpu_time(tls.server) as spent:
                done = log_in(tls, users, count=count)
            values = {"per_second": done["count"] / done["seconds"]}
            with temporary_topic(tls.server, "beside-1p", partition_count=1) as topic:
                paced(tls, topic, seconds=3)
                values["quiet_p99_ms"] = paced(tls, topic, seconds=seconds)
                # Nice, so that the producer waits for the broker and not for a core that a client has.
                beside = options_of(tls, users, seconds=60, threads=BESIDE_THREADS, is_nice=True)
                with context.background_client("log_in", server=tls.server, **beside):
                    values["busy_p99_ms"] = paced(tls, topic, seconds=seconds)
        values["busy_to_quiet"] = values["busy_p99_ms"] / values["quiet_p99_ms"]
        return Sample(values, {"per_second": spent.seconds / count * 1000})


def options_of(tls: Secured, users: list[str], **more: Any) -> dict[str, Any]:
    return {
        "address": tls.server.address("SASL_SSL"),
        "trusted": tls.trusted,
        "users": users,
        "password": PASSWORD,
        "threads": AT_ONCE,
        **more,
    }


def log_in(tls: Secured, users: list[str], *, count: int) -> dict[str, float]:
    done: dict[str, float] = tls.context.client(
        "log_in", server=tls.server, **options_of(tls, users, count=count)
    )
    return done


def paced(tls: Secured, topic: str, *, seconds: int) -> float:
    """The 99th percentile, in ms."""
    options: dict[str, Any] = {"topic": topic, "rate": RATE, "warm_up_s": WARM_UP_S, "seconds": seconds}
    result = tls.context.client("paced", server=tls.server, client=tls.librdkafka("SSL"), **options)
    return float(result["p99_ms"])
