"""What clients last pushed, under bounds: for each client the last value of each of its series.

A report adds to what a client reported before: some clients leave out what has not changed. A series that is not reported
again is forgotten after the client's expiry, and so is a silent client.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from penstock.telemetry.otlp import Attributes, Kind, Point

MAX_CLIENTS: Final = 1_000
"""Of which reports are kept; past it, whoever reported longest ago is forgotten."""
MAX_SERIES_PER_CLIENT: Final = 1_000
MAX_SERIES: Final = 20_000
"""Of all clients together. What comes past a bound is left out, and counted."""
MAX_CHARACTERS_PER_CLIENT: Final = 512 * 1024
MAX_CHARACTERS: Final = 8 * 1024 * 1024
"""Of the names and attributes of all series. A series has some hundred; one may be made to have 30,000."""
MAX_CLIENT_ID_LENGTH: Final = 256
"""The rest is cut off: it stands beside each series on the page."""

SeriesKey = tuple[str, Attributes]


class Series(NamedTuple):
    name: str
    kind: Kind
    attributes: Attributes
    value: float
    reported_ms: int


class ClientReport(NamedTuple):
    client_instance_id: str
    client_id: str
    series: list[Series]


class _Client:
    __slots__ = ("characters", "client_id", "expires_ms", "expiry_ms", "series")

    def __init__(self) -> None:
        self.client_id = ""
        self.series: dict[SeriesKey, Series] = {}
        self.characters = 0
        self.expiry_ms = 0
        self.expires_ms = 0


class Reports:
    def __init__(self) -> None:
        self._clients: dict[str, _Client] = {}  # who reported last is last
        self.series_count = 0
        self.characters = 0
        self.received = 0
        self.dropped_series = 0

    def __len__(self) -> int:
        return len(self._clients)

    def put(
        self,
        client_instance_id: str,
        client_id: str,
        points: Iterable[Point],
        *,
        now_ms: int,
        expiry_ms: int,
        is_cut: bool = False,
    ) -> None:
        """`is_cut`: there was more than `points`."""
        client = self._clients.pop(client_instance_id, None) or _Client()
        self._clients[client_instance_id] = client
        client.client_id = client_id[:MAX_CLIENT_ID_LENGTH]
        client.expiry_ms, client.expires_ms = expiry_ms, now_ms + expiry_ms
        self.received += 1
        self.dropped_series += is_cut
        self.forget_silent(now_ms)
        while len(self._clients) > MAX_CLIENTS:
            self._drop(next(iter(self._clients)))
        for point in points:
            key = (point.name, point.attributes)
            before = client.series.get(key)
            if before is None:
                characters = _characters(key)
                if not self._has_room(client, characters):
                    self.dropped_series += 1
                    continue
                self.series_count += 1
                client.characters += characters
                self.characters += characters
            value = point.value + before.value if point.is_delta and before is not None else point.value
            client.series[key] = Series(point.name, point.kind, point.attributes, value, now_ms)

    def _has_room(self, client: _Client, characters: int) -> bool:
        return (
            len(client.series) < MAX_SERIES_PER_CLIENT
            and self.series_count < MAX_SERIES
            and client.characters + characters <= MAX_CHARACTERS_PER_CLIENT
            and self.characters + characters <= MAX_CHARACTERS
        )

    def forget_silent(self, now_ms: int) -> None:
        for name in [name for name, client in self._clients.items() if client.expires_ms <= now_ms]:
            self._drop(name)

    def _drop(self, client_instance_id: str) -> None:
        client = self._clients.pop(client_instance_id)
        self.series_count -= len(client.series)
        self.characters -= client.characters

    def snapshot(self, now_ms: int) -> Iterator[ClientReport]:
        """One client after the other, so that whoever reads all of them can pause; who is gone by then is left out."""
        self.forget_silent(now_ms)
        for name in tuple(self._clients):
            client = self._clients.get(name)
            if client is None:
                continue
            old_ms = now_ms - client.expiry_ms
            old = [key for key, series in client.series.items() if series.reported_ms <= old_ms]
            for key in old:
                del client.series[key]
                client.characters -= _characters(key)
                self.characters -= _characters(key)
            self.series_count -= len(old)
            yield ClientReport(name, client.client_id, list(client.series.values()))


def _characters(key: SeriesKey) -> int:
    name, attributes = key
    return len(name) + sum(len(each) + len(value) for each, value in attributes)
