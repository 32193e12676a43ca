"""Metrics that clients push (KIP-714): who may push what, and what they pushed last, for the metrics page.

A thread unpacks and reads a report. The number of waiting reports is limited; beyond that a client is told to try again later.
"""

import logging
import time
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from penstock.metadata.image import CLIENT_METRICS
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import id_text
from penstock.telemetry.instances import ClientInstances, expiry_ms
from penstock.telemetry.reports import MAX_SERIES_PER_CLIENT, ClientReport, Reports
from penstock.telemetry.subscriptions import ClientIdentity, Subscription, read_subscription
from penstock.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from penstock.wire.messages.push_telemetry import PushTelemetryRequest

if TYPE_CHECKING:
    from penstock.broker.facets import WithClock, WithConfig, WithImage, WithPools, WithRandom
    from penstock.broker.requests.call import Call
    from penstock.telemetry.otlp import Point

    class Needs(WithClock, WithConfig, WithImage, WithPools, WithRandom, Protocol): ...


log = logging.getLogger("penstock.broker")

MAX_WAITING_REPORTS: Final = 64
MAX_UNPACKED_BYTES: Final = 4 * 1024 * 1024
NAP_SECONDS: Final = 0.0002


class ClientMetricsFacts(NamedTuple):
    instances: int
    throttled: int
    unknown_subscriptions: int
    received: int
    refused: int
    dropped_series: int
    reports: list[ClientReport]


class ReadReport(NamedTuple):
    points: "list[Point]"
    is_cut: bool


class ClientMetrics:
    def __init__(self, node: "Needs") -> None:
        self._node = node
        self._instances = ClientInstances(
            max_report_bytes=node.config.get("telemetry.max.bytes"), new_id=self._new_id
        )
        self._reports = Reports()
        self._is_stale = True
        self._waiting = 0
        self._refused = 0

    def config_changed(self) -> None:
        """The subscriptions are read again when the next client comes."""
        self._is_stale = True

    def ask(self, call: "Call", client_instance_id: bytes) -> GetTelemetrySubscriptionsResponse:
        self._refresh()
        return self._instances.ask(
            client_instance_id, lambda id: _identity(call, id), self._node.clock.now_ms()
        )

    async def push(self, call: "Call", request: PushTelemetryRequest) -> None:
        """ApiError when it is not taken."""
        self._refresh()
        now_ms = self._node.clock.now_ms()
        instance = self._instances.push(request, lambda id: _identity(call, id), now_ms)
        if not request.metrics:
            return
        if self._waiting >= MAX_WAITING_REPORTS:
            raise ApiError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED, "too many reports of other clients are waiting"
            )
        self._waiting += 1
        try:
            read = await self._node.pools.bulk.run(_read, request.compression_type, request.metrics)
        finally:
            self._waiting -= 1
        name = id_text(request.client_instance_id)
        if read is None:
            self._refused += 1
            raise ApiError(ErrorCode.INVALID_RECORD, f"cannot read what client {name} pushed")
        self._reports.put(
            name,
            call.client_id,
            read.points,
            now_ms=now_ms,
            expiry_ms=expiry_ms(instance.subscribed.interval_ms),
            is_cut=read.is_cut,
        )

    def facts(self) -> ClientMetricsFacts:
        """Without the reports: `reports` gives them one by one."""
        return ClientMetricsFacts(
            instances=len(self._instances),
            throttled=self._instances.throttled,
            unknown_subscriptions=self._instances.unknown_subscriptions,
            received=self._reports.received,
            refused=self._refused,
            dropped_series=self._reports.dropped_series,
            reports=[],
        )

    @property
    def reports(self) -> Reports:
        return self._reports

    def _new_id(self) -> bytes:
        while True:
            raw = self._node.random.randbytes(16)
            if not id_text(raw).startswith("-"):  # as in Kafka: it may be a word of a command
                return raw

    def _refresh(self) -> None:
        if not self._is_stale:
            return
        self._is_stale = False
        subscriptions: list[Subscription] = []
        for name, overrides in self._node.image.configs.get(CLIENT_METRICS, {}).items():
            try:
                subscriptions.append(read_subscription(overrides))
            except ApiError as error:  # stored by other means than ours
                log.warning("the client metrics subscription %s is ignored: %s", name, error.detail)
        self._instances.set_subscriptions(subscriptions)


def _identity(call: "Call", client_instance_id: bytes) -> ClientIdentity:
    connection = call.connection
    software_name, software_version = connection.client_software or (None, None)
    return ClientIdentity(
        client_instance_id=id_text(client_instance_id),
        client_id=call.client_id,
        client_software_name=software_name,
        client_software_version=software_version,
        client_source_address=connection.peer_host,
        client_source_port=str(connection.peer_port),
    )


def _read(codec: int, payload: bytes) -> ReadReport | None:
    """In a thread. None: it is damaged, or unfolds to more than it may. Naps now and then let the loop have its turns."""
    from penstock.records.batch import InvalidRecord
    from penstock.records.compression import decompress
    from penstock.telemetry.otlp import MetricsReader
    from penstock.wire.errors import Malformed

    found: list[Point] = []
    try:
        plain = decompress(codec, payload, max_bytes=MAX_UNPACKED_BYTES)
        for point in MetricsReader(pause=lambda: time.sleep(NAP_SECONDS)).points(plain):
            if len(found) >= MAX_SERIES_PER_CLIENT:
                return ReadReport(found, is_cut=True)
            found.append(point)
    except (InvalidRecord, Malformed) as error:
        log.debug("cannot read a report of client metrics: %s", error)  # counted, and told to the client
        return None
    return ReadReport(found, is_cut=False)
