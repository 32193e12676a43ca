"""Idle TLS connections: how many are held, and what each costs in memory."""

from typing import Any

from bench.context import Context
from bench.measure import Row, Sample, Scale
from bench.secured import Secured, secured
from bench.workloads.form import STORING_SERVERS

KIBIBYTE = 1024
WARM_UP_CONNECTIONS = 100


class IdleTlsConnections:
    name = "idle-tls"
    server_names = STORING_SERVERS
    about = "5,000 TLS 1.3 connections that have asked for the versions and idle; then each asks again"
    rows = (
        Row("memory_kib", "resident memory per idle TLS connection", "KiB", "lower", 60, bounds="value"),
        Row(
            "held", "idle TLS connections that are still served, of 5,000", "", "higher", 5000, bounds="value"
        ),
        Row("opened_per_second", "TLS connections opened one after the other", "1/s", "higher", None),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1)

    def run(self, context: Context) -> Sample:
        count = 5000
        with secured(context) as tls:
            hold(tls, WARM_UP_CONNECTIONS)
            resident, seconds, answered = hold(tls, count)
        return Sample(
            {
                "memory_kib": resident / KIBIBYTE / count,
                "held": answered,
                "opened_per_second": count / seconds,
            }
        )


def hold(tls: Secured, count: int) -> tuple[float, float, int]:
    """Bytes that they added, seconds to open them, how many were answered at the end."""
    options: dict[str, Any] = {"address": tls.server.address("SSL"), "trusted": tls.trusted, "count": count}
    before = tls.server.usage().resident_bytes
    with tls.context.background_client("hold_tls", server=tls.server, **options) as holder:
        seconds = float(holder.said()["seconds"])
        added = tls.server.usage().resident_bytes - before
        answered = int(holder.result()["answered"])
    return added, seconds, answered
