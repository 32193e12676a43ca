"""How Kafka measures what a client takes, which limit counts for it, and how long it must wait.

A rate is measured over samples. With 11 samples of a second (`quota.window.num`, `quota.window.size.seconds`) the sum of the
samples is divided by the time since the oldest one began, and by 10 seconds at least. So with a limit of 5 MB/s a client that was
quiet may send 50 MB at once. After 55 MB the rate is 5.5 MB/s, and the client waits for a second:
(5.5 - 5) / 5 × 10 s.
"""

import math
from collections import Counter, deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from penstock.model.quotas import CONNECTION_CREATION_RATE, Entity, entity


class Window(NamedTuple):
    """Over how many samples is measured, and how long each is."""

    samples: int = 11
    sample_ms: int = 1000

    @property
    def whole_ms(self) -> int:
        return self.samples * self.sample_ms


class _Sample:
    __slots__ = ("amount", "began_ms", "last_ms")

    def __init__(self, now_ms: int) -> None:
        self.began_ms = now_ms
        self.last_ms = now_ms
        self.amount = 0.0


class SampledRate:
    """Kafka's `Rate`: an amount per second."""

    __slots__ = ("_samples", "_window", "last_ms")

    def __init__(self, window: Window, *, now_ms: int = 0) -> None:
        self._window = window
        self._samples: deque[_Sample] = deque()
        self.last_ms = now_ms
        """When it was used last."""

    def record(self, amount: float, *, now_ms: int) -> None:
        """A negative amount takes back what was recorded in the same step."""
        samples = self._samples
        if not samples or now_ms - samples[-1].began_ms >= self._window.sample_ms:
            self._forget_old(now_ms)
            samples.append(_Sample(now_ms))
        current = samples[-1]
        current.amount += amount
        current.last_ms = self.last_ms = now_ms

    def is_empty(self, *, now_ms: int) -> bool:
        self._forget_old(now_ms)
        return not any(each.amount for each in self._samples)

    def per_second(self, *, now_ms: int) -> float:
        self._forget_old(now_ms)
        return sum(each.amount for each in self._samples) * 1000 / self._elapsed_ms(now_ms)

    def throttle_ms(self, limit: float, *, now_ms: int, most_ms: int) -> int:
        """Until the rate is the limit again; 0 when it is not above."""
        rate = self.per_second(now_ms=now_ms)
        if rate <= limit:
            return 0
        return min(_rounded((rate - limit) / limit * self._elapsed_ms(now_ms)), most_ms)

    def _elapsed_ms(self, now_ms: int) -> int:
        samples, sample_ms = self._window
        elapsed_ms = now_ms - self._samples[0].began_ms if self._samples else 0
        missing = samples - 1 - elapsed_ms // sample_ms
        return max(elapsed_ms + max(missing, 0) * sample_ms, sample_ms)

    def _forget_old(self, now_ms: int) -> None:
        samples = self._samples
        while samples and now_ms - samples[0].last_ms >= self._window.whole_ms:
            samples.popleft()


class TokenBucket:
    """Kafka's measure of `controller_mutation_rate`: a whole window's worth may be taken at once, also a bit more than there is.
    Then nothing is given until the bucket has filled up to zero again."""

    __slots__ = ("_tokens", "_window", "last_ms")

    def __init__(self, window: Window, *, now_ms: int = 0) -> None:
        self._window = window
        self._tokens = math.inf
        """Filled up to what a whole window gives, once the limit is known."""
        self.last_ms = now_ms

    def take(self, amount: float, limit: float, *, now_ms: int) -> None:
        self._refill(limit, now_ms)
        self._tokens -= amount

    def throttle_ms(self, limit: float, *, now_ms: int) -> int:
        """Until something may be taken again; 0: now."""
        self._refill(limit, now_ms)
        return 0 if self._tokens >= 0 else _rounded(-self._tokens / limit * 1000)

    def _refill(self, limit: float, now_ms: int) -> None:
        gained = limit * (now_ms - self.last_ms) / 1000
        self._tokens = min(self._tokens + gained, limit * self._window.whole_ms / 1000)
        self.last_ms = now_ms


def _rounded(milliseconds: float) -> int:
    """As Java rounds. At most what a response can say."""
    return min(math.floor(milliseconds + 0.5), 2**31 - 1)


class Limit(NamedTuple):
    """`user` and `client_id` say who shares it; "" where it is for all of them together. ana's own limit is shared by all her
    clients (client_id ""), but each of her clients has its own where the limit is for her clients."""

    value: float
    user: str
    client_id: str


_DEFAULT: Final = None


class QuotaTable:
    """The quotas of a cluster, by entity."""

    __slots__ = ("_quotas", "names")

    def __init__(self, quotas: Mapping[Entity, Mapping[str, float]]) -> None:
        self._quotas: dict[Entity, Mapping[str, float]] = {}
        self.names: Counter[str] = Counter()
        """What is limited at all, and how often."""
        for of, values in quotas.items():
            self.set(of, values)

    def set(self, of: Entity, values: Mapping[str, float]) -> bool:
        """All that the entity has from now on. Whether that is something new."""
        before = self._quotas.pop(of, {})
        if values:
            self._quotas[of] = values
        self.names.subtract(before.keys())
        self.names.update(values.keys())
        self.names += Counter()  # drops what is limited no more
        return before != values

    def limit(self, name: str, user: str, client_id: str) -> Limit | None:
        """The one that counts: of those for this user and client the most special one, in Kafka's order."""
        for found, of_user, of_client in (
            (entity(user=user, client_id=client_id), user, client_id),
            (entity(user=user, client_id=_DEFAULT), user, client_id),
            (entity(user=user), user, ""),
            (entity(user=_DEFAULT, client_id=client_id), user, client_id),
            (entity(user=_DEFAULT, client_id=_DEFAULT), user, client_id),
            (entity(user=_DEFAULT), user, ""),
            (entity(client_id=client_id), "", client_id),
            (entity(client_id=_DEFAULT), "", client_id),
        ):
            value = self._quotas.get(found, {}).get(name)
            if value is not None:
                return Limit(value, of_user, of_client)
        return None

    def connections_per_second(self, ip: str) -> float | None:
        for found in (entity(ip=ip), entity(ip=_DEFAULT)):
            value = self._quotas.get(found, {}).get(CONNECTION_CREATION_RATE)
            if value is not None:
                return value
        return None
