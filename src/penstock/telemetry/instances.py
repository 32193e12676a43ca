"""The client instances that have asked for a subscription, and what each may do.

    asks for its subscription   at most once in an interval, or when its last push was refused for an old subscription
    pushes                      once after each answer to that, then once in an interval; a last time when it terminates

A client keeps its instance id when it goes to another broker: an id that is not known here is taken as it is.
"""

from collections.abc import Callable, Iterable
from typing import Final

from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import NO_ID, id_text
from penstock.records.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from penstock.records.crc import crc32c
from penstock.telemetry.subscriptions import ClientIdentity, Subscribed, Subscription, subscribed
from penstock.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from penstock.wire.messages.push_telemetry import PushTelemetryRequest

MAX_INSTANCES: Final = 16_384
"""As in Kafka. Past it, whoever has been silent for longest is forgotten; it may come back."""
MIN_EXPIRY_MS: Final = 60_000
INTERVALS_TO_EXPIRY: Final = 3
ACCEPTED_CODECS: Final = (ZSTD, LZ4, GZIP, SNAPPY)
"""The best first."""
RESERVED_IDS: Final = (NO_ID, bytes(15) + b"\1")
ASK_AGAIN: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
NEVER: Final = -(1 << 62)

Identify = Callable[[bytes], ClientIdentity]
"""The client that sent the request, under this instance id."""


def expiry_ms(interval_ms: int) -> int:
    """After so long a silence an instance and its report are forgotten."""
    return max(MIN_EXPIRY_MS, INTERVALS_TO_EXPIRY * interval_ms)


class ClientInstance:
    __slots__ = (
        "asked_ms", "expires_ms", "is_just_told", "is_terminating", "last_error", "pushed_ms", "revision", "subscribed",
        "subscription_id",
    )  # fmt: skip

    def __init__(self, instance_id: bytes, subscribed: Subscribed, revision: int) -> None:
        self.subscribed = subscribed
        self.subscription_id = subscription_id(instance_id, subscribed)
        self.revision = revision
        self.asked_ms = NEVER
        self.pushed_ms = NEVER
        self.expires_ms = NEVER
        self.is_just_told = False
        """It has not pushed since it got its subscription."""
        self.is_terminating = False
        self.last_error = ErrorCode.NONE

    def may_ask(self, now_ms: int) -> bool:
        return (
            now_ms - max(self.asked_ms, self.pushed_ms) >= self.subscribed.interval_ms
            or self.last_error in ASK_AGAIN
        )

    def may_push(self, now_ms: int) -> bool:
        return self.is_just_told or now_ms - self.pushed_ms >= self.subscribed.interval_ms


def subscription_id(instance_id: bytes, subscribed: Subscribed) -> int:
    """Changes with what is subscribed; the same on every broker. A signed number of 32 bits."""
    text = f"{','.join(subscribed.metrics)} {subscribed.interval_ms}"
    value = crc32c(text.encode()) ^ crc32c(instance_id)
    return value - (1 << 32) if value >= 1 << 31 else value


class ClientInstances:
    def __init__(self, *, max_report_bytes: int, new_id: Callable[[], bytes]) -> None:
        self._max_report_bytes = max_report_bytes
        self._new_id = new_id
        self._known: dict[bytes, ClientInstance] = {}  # who was heard of last is last
        self._subscriptions: tuple[Subscription, ...] = ()
        self._revision = 0
        self.throttled = 0
        self.unknown_subscriptions = 0

    def __len__(self) -> int:
        return len(self._known)

    def set_subscriptions(self, subscriptions: Iterable[Subscription]) -> None:
        self._subscriptions = tuple(subscriptions)
        self._revision += 1

    def ask(self, instance_id: bytes, identify: Identify, now_ms: int) -> GetTelemetrySubscriptionsResponse:
        if instance_id == NO_ID:
            instance_id = self._new_id()
        instance = self._instance(instance_id, identify, now_ms)
        if not instance.may_ask(now_ms):
            raise self._throttle(instance_id)
        instance.asked_ms = now_ms
        instance.is_just_told = True
        instance.last_error = ErrorCode.NONE
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=instance.subscription_id,
            accepted_compression_types=ACCEPTED_CODECS,
            push_interval_ms=instance.subscribed.interval_ms,
            telemetry_max_bytes=self._max_report_bytes,
            # Sums since the client's start, which is what Prometheus asks for; Kafka's broker asks for differences.
            delta_temporality=False,
            requested_metrics=instance.subscribed.metrics,
        )

    def push(self, request: PushTelemetryRequest, identify: Identify, now_ms: int) -> ClientInstance:
        """ApiError when what is pushed is not to be taken."""
        if request.client_instance_id in RESERVED_IDS:
            raise ApiError(ErrorCode.INVALID_REQUEST, "a client needs an instance id to push metrics")
        instance = self._instance(request.client_instance_id, identify, now_ms)
        try:
            self._check_push(request, instance, now_ms)
        except ApiError as error:
            instance.last_error = error.code
            raise
        finally:
            instance.is_terminating = request.terminating
        instance.last_error = ErrorCode.NONE
        return instance

    def _check_push(self, request: PushTelemetryRequest, instance: ClientInstance, now_ms: int) -> None:
        name = id_text(request.client_instance_id)
        if instance.is_terminating:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"client {name} has said that it terminates")
        if instance.may_push(now_ms):
            instance.pushed_ms = now_ms
            instance.is_just_told = False
        elif not request.terminating:
            raise self._throttle(request.client_instance_id)
        if request.subscription_id != instance.subscription_id:
            self.unknown_subscriptions += 1
            raise ApiError(
                ErrorCode.UNKNOWN_SUBSCRIPTION_ID, f"client {name} has another subscription by now"
            )
        if request.compression_type not in (NONE, *ACCEPTED_CODECS):
            raise ApiError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"client {name}: unknown codec {request.compression_type}",
            )
        if len(request.metrics) > self._max_report_bytes:
            raise ApiError(
                ErrorCode.TELEMETRY_TOO_LARGE,
                f"client {name}: {len(request.metrics)} bytes are more than {self._max_report_bytes}",
            )

    def _throttle(self, instance_id: bytes) -> ApiError:
        self.throttled += 1
        return ApiError(
            ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            f"client {id_text(instance_id)} came before its interval was over",
        )

    def _instance(self, instance_id: bytes, identify: Identify, now_ms: int) -> ClientInstance:
        instance = self._known.pop(instance_id, None)
        if instance is None or instance.revision != self._revision:
            wanted = subscribed(identify(instance_id), self._subscriptions)
            if instance is None or instance.subscribed != wanted:
                instance = ClientInstance(instance_id, wanted, self._revision)
            instance.revision = self._revision
        instance.expires_ms = now_ms + expiry_ms(instance.subscribed.interval_ms)
        self._known[instance_id] = instance
        self._forget(now_ms)
        return instance

    def _forget(self, now_ms: int) -> None:
        while self._known:
            eldest = next(iter(self._known))
            if self._known[eldest].expires_ms > now_ms and len(self._known) <= MAX_INSTANCES:
                return
            del self._known[eldest]
