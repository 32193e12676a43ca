"""Quotas of users and client ids: how long a client waits after a request, and the muting of its connection.

Which quotas count for a client is looked up once and remembered until a quota changes. Rates live on: they are forgotten when
nobody has used them for an hour, or when there are too many.
"""

import hashlib
from collections.abc import Awaitable, Generator
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from penstock.broker.quotas.throttle_times import ThrottleTimes
from penstock.broker.requests.call import Call
from penstock.broker.requests.forwarding import is_relayed, own_client_id
from penstock.metadata.image import ConfigsChanged
from penstock.metadata.quotas import KINDS, entity_at, quotas_at, quotas_of
from penstock.model.api_keys import ApiKey
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    OF_CLIENTS,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from penstock.security.quotas import QuotaTable, SampledRate, TokenBucket, Window

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithAuthorizer,
        WithClock,
        WithConfig,
        WithImage,
        WithMarks,
        WithRequestCounts,
    )

    class Needs(WithAuthorizer, WithClock, WithConfig, WithImage, WithMarks, WithRequestCounts, Protocol): ...


R = TypeVar("R")
M = TypeVar("M", SampledRate, TokenBucket)

FORGET_AFTER_MS: Final = 3_600_000
MOST_CLIENTS: Final = 10_000
"""Whose quotas and rates are remembered. When there are more, those who were quiet longest make room."""
MAX_REMEMBERED_NAME: Final = 249
_PERCENT: Final = 100.0
_NEVER_CHARGED: Final = frozenset(
    map(int, (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.WRITE_TXN_MARKERS))
)
_BETWEEN_BROKERS_FROM: Final = 4
"""From this version on AddPartitionsToTxn comes from other brokers."""


class Quota(Generic[M]):
    """One limit with its measure, which all who share the limit share."""

    __slots__ = ("limit", "measure")

    def __init__(self, limit: float, measure: M) -> None:
        self.limit = limit
        self.measure: M = measure


class _Client:
    """What counts for one user and client id."""

    __slots__ = ("fetched", "last_ms", "mutated", "produced", "spent")

    def __init__(self) -> None:
        self.produced: Quota[SampledRate] | None = None
        self.fetched: Quota[SampledRate] | None = None
        self.spent: Quota[SampledRate] | None = None
        self.mutated: Quota[TokenBucket] | None = None
        self.last_ms = 0


class ClientQuotas:
    def __init__(self, node: "Needs") -> None:
        self._node = node
        get = node.config.get
        self._window = Window(get("quota.window.num"), get("quota.window.size.seconds") * 1000)
        self._mutation_window = Window(
            get("controller.quota.window.num"), get("controller.quota.window.size.seconds") * 1000
        )
        self._clients: dict[tuple[str, str], _Client] = {}
        self._shared: dict[tuple[str, str, str], SampledRate | TokenBucket] = {}
        self.table = QuotaTable(quotas_of(node.image))
        self.throttle_times = ThrottleTimes()
        self.is_active = False
        """Whether any client has a quota."""
        self._look()

    def config_changed(self, change: ConfigsChanged) -> None:
        if change.entity_type in KINDS:
            values = quotas_at(self._node.image, change.entity_type, change.entity_name)
            if self.table.set(entity_at(change.entity_type, change.entity_name), values):
                self._look()

    def _look(self) -> None:
        self.is_active = any(name in self.table.names for name in OF_CLIENTS)
        self._clients.clear()
        if not self.is_active:
            self._shared.clear()

    # --- what requests took

    def now_s(self) -> float:
        """For whoever measures what a request takes."""
        return self._node.clock.monotonic()

    def produced(self, call: Call, size_bytes: int, *, spent_s: float) -> int:
        """For how long the client is muted now, in milliseconds; 0: not at all."""
        client, now_ms = self._client(call)
        wait_ms = self._charge(client.produced, size_bytes, now_ms, self._window.whole_ms)
        self.throttle_times.note("Produce", wait_ms)
        return self._wait(call, max(wait_ms, self._charge_time(client, spent_s, now_ms)))

    def most_fetched(self, call: Call) -> int | None:
        """The largest answer that a client can get without being over its quota for ever."""
        quota = self._client(call)[0].fetched
        if quota is None:
            return None
        return int(quota.limit * (self._window.samples - 1) * self._window.sample_ms / 1000)

    def fetched(self, call: Call, size_bytes: int, *, spent_s: float) -> int:
        """As `produced`. Where the client must wait its answer is to be empty, and its bytes do not count."""
        client, now_ms = self._client(call)
        quota, wait_ms = client.fetched, 0
        if quota is not None:
            # Who has had nothing gets what there is: the first batch may be larger than all that the quota allows at once.
            is_first = quota.measure.is_empty(now_ms=now_ms)
            wait_ms = self._charge(quota, size_bytes, now_ms, self._window.whole_ms)
            wait_ms = 0 if is_first else wait_ms
        time_ms = self._charge_time(client, spent_s, now_ms)
        if quota is not None and (wait_ms or time_ms):
            quota.measure.record(-size_bytes, now_ms=now_ms)
        self.throttle_times.note("Fetch", wait_ms)
        return self._wait(call, max(wait_ms, time_ms))

    def answered(self, call: Call, response: Any, *, spent_s: float) -> None:
        """Any other request, when its answer is known: the answer says for how long the client must wait."""
        header = call.header
        if not self.is_active:
            return  # this was the request that removed the last quota
        if header.api.between_brokers or header.api_key in _NEVER_CHARGED or is_relayed(self._node, call):
            return  # who forwarded the request mutes its client
        if header.api_key == ApiKey.ADD_PARTITIONS_TO_TXN and header.api_version >= _BETWEEN_BROKERS_FROM:
            return
        client, now_ms = self._client(call)
        already_ms: int = getattr(response, "throttle_time_ms", 0)
        wait_ms = self._wait(call, max(already_ms, self._charge_time(client, spent_s, now_ms)))
        if wait_ms > already_ms and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = wait_ms

    def mutations(self, call: Call, *, strict_from: int) -> "Mutations":
        quota = self._client(call)[0].mutated if self.is_active else None
        return Mutations(self, quota, is_strict=call.api_version >= strict_from)

    def relayed(self, call: Call, throttle_time_ms: int) -> None:
        """The controller's answer says that our client must wait."""
        self._mute(call, throttle_time_ms)

    def now_ms(self) -> int:
        return int(self._node.clock.monotonic() * 1000)

    def _charge(self, quota: Quota[SampledRate] | None, amount: float, now_ms: int, most_ms: int) -> int:
        if quota is None:
            return 0
        quota.measure.record(amount, now_ms=now_ms)
        return quota.measure.throttle_ms(quota.limit, now_ms=now_ms, most_ms=most_ms)

    def _charge_time(self, client: _Client, spent_s: float, now_ms: int) -> int:
        """As with Kafka, nobody waits longer for that than one sample is long."""
        wait_ms = self._charge(client.spent, spent_s * _PERCENT, now_ms, self._window.sample_ms)
        self.throttle_times.note("Request", wait_ms)
        return wait_ms

    def _wait(self, call: Call, wait_ms: int) -> int:
        if wait_ms > 0:
            self._node.request_counts.of(call.header.api_key).note_throttle(wait_ms)
        return self._mute(call, wait_ms)

    def _mute(self, call: Call, wait_ms: int) -> int:
        if wait_ms > 0:
            call.connection.mute(wait_ms / 1000)
        return wait_ms

    # --- who has which quotas

    def _client(self, call: Call) -> tuple[_Client, int]:
        user, client_id = call.principal.name, own_client_id(call)
        key = (_remembered(user), _remembered(client_id))
        now_ms = self.now_ms()
        client = self._clients.get(key)
        if client is None:
            if len(self._clients) >= MOST_CLIENTS:
                forget_oldest(self._clients, now_ms)
            client = self._clients[key] = self._of(user, client_id, now_ms)
        client.last_ms = now_ms
        return client, now_ms

    def _of(self, user: str, client_id: str, now_ms: int) -> _Client:
        client = _Client()
        client.produced = self._rate(PRODUCER_BYTE_RATE, user, client_id, now_ms)
        client.fetched = self._rate(CONSUMER_BYTE_RATE, user, client_id, now_ms)
        client.spent = self._rate(REQUEST_PERCENTAGE, user, client_id, now_ms)
        limit = self.table.limit(CONTROLLER_MUTATION_RATE, user, client_id)
        if limit is not None:
            key = (CONTROLLER_MUTATION_RATE, _remembered(limit.user), _remembered(limit.client_id))
            bucket = self._measure(key, TokenBucket(self._mutation_window, now_ms=now_ms), now_ms)
            client.mutated = Quota(limit.value, bucket)
        return client

    def _rate(self, name: str, user: str, client_id: str, now_ms: int) -> Quota[SampledRate] | None:
        limit = self.table.limit(name, user, client_id)
        if limit is None:
            return None
        key = (name, _remembered(limit.user), _remembered(limit.client_id))
        return Quota(limit.value, self._measure(key, SampledRate(self._window, now_ms=now_ms), now_ms))

    def _measure(self, key: tuple[str, str, str], new: M, now_ms: int) -> M:
        if key not in self._shared:
            if len(self._shared) >= MOST_CLIENTS * len(OF_CLIENTS):
                forget_oldest(self._shared, now_ms)
            self._shared[key] = new
        found: Any = self._shared[key]
        measure: M = found
        return measure


def _remembered(name: str) -> str:
    """The name, or what stands for one that is long: clients choose theirs, of up to 32 KB."""
    if len(name) <= MAX_REMEMBERED_NAME:
        return name
    return f"{name[:MAX_REMEMBERED_NAME]} {hashlib.sha256(name.encode()).hexdigest()}"


class Mutations:
    """What one request changes of the cluster's partitions. `take` raises where a strict one must come again later."""

    def __init__(self, quotas: ClientQuotas, quota: Quota[TokenBucket] | None, *, is_strict: bool) -> None:
        self._quotas = quotas
        self._quota = quota
        self._is_strict = is_strict
        self.throttle_time_ms = 0
        """For the answer."""

    def take(self, partitions: int) -> None:
        quota = self._quota
        if quota is None:
            return
        now_ms = self._quotas.now_ms()
        if self._is_strict:
            self._note(quota.measure.throttle_ms(quota.limit, now_ms=now_ms))
            if self.throttle_time_ms:
                raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")
        quota.measure.take(partitions, quota.limit, now_ms=now_ms)
        if not self._is_strict:
            self._note(quota.measure.throttle_ms(quota.limit, now_ms=now_ms))

    def _note(self, wait_ms: int) -> None:
        self.throttle_time_ms = max(self.throttle_time_ms, wait_ms)
        self._quotas.throttle_times.note("ControllerMutation", wait_ms)


class Meter:
    """How long the loop's thread is busy with what is awaited here; what it waits for does not count."""

    def __init__(self, quotas: ClientQuotas) -> None:
        self._now_s = quotas.now_s
        self.spent_s = 0.0

    async def run(self, work: Awaitable[R]) -> R:
        return await _Steps(self, work)

    def add_since(self, began_s: float) -> None:
        self.spent_s += self._now_s() - began_s

    def now_s(self) -> float:
        return self._now_s()


class _Steps(Generic[R]):
    def __init__(self, meter: Meter, work: Awaitable[R]) -> None:
        self._meter = meter
        self._work = work

    def __await__(self) -> Generator[Any, Any, R]:
        steps: Any = self._work.__await__()
        meter = self._meter
        failure: BaseException | None = None
        while True:
            began_s = meter.now_s()
            try:
                awaited = steps.send(None) if failure is None else steps.throw(failure)
            except StopIteration as end:
                result: R = end.value
                return result
            finally:
                meter.add_since(began_s)
            failure = None
            try:
                yield awaited
            except BaseException as error:  # the task is cancelled: so is what it awaits
                failure = error


class _Dated(Protocol):
    last_ms: int


K = TypeVar("K")
D = TypeVar("D", bound=_Dated)


def forget_oldest(entries: dict[K, D], now_ms: int) -> None:
    """Those that nobody used for an hour; where all are in use, a quarter of them."""
    idle = [key for key, each in entries.items() if now_ms - each.last_ms >= FORGET_AFTER_MS]
    if not idle:
        idle = sorted(entries, key=lambda key: entries[key].last_ms)[: len(entries) // 4 + 1]
    for key in idle:
        del entries[key]
