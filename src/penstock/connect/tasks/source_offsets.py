"""How far a source has come: what it has handed over, what is delivered, and what is kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.connect.errors import ConnectError
from penstock.connect.interface import SourcePlace
from penstock.connect.tasks.offsets import OffsetStore, Send, place_text


class SourceOffsets:
    """Read when they are first asked for. Records are seen in the order in which they were polled; `write` keeps the last offset
    that was seen of each source partition, and is called when all that was seen is delivered (or in the transaction with it)."""

    def __init__(self, store: OffsetStore, connector: str) -> None:
        self._store, self._connector = store, connector
        self._kept: dict[str, dict[str, Any]] | None = None
        self._seen: dict[str, str | None] = {}
        self._batch: dict[str, Any] = {}
        self._last: Mapping[str, Any] | None = None
        self._last_text = ""

    @property
    def has_news(self) -> bool:
        return bool(self._seen)

    def offset(self, partition: SourcePlace) -> dict[str, Any] | None:
        text = self._store.spell(self._connector, partition)
        found = self._load().get(text)
        return None if found is None else dict(found)

    def offsets(self, partitions: Iterable[SourcePlace]) -> list[dict[str, Any] | None]:
        return [self.offset(each) for each in partitions]

    def see(self, partition: Mapping[str, Any] | None, place: Mapping[str, Any] | None) -> None:
        """Of a record that was sent, left out, or kept as a dead letter."""
        if partition is None:
            return
        if partition is not self._last and partition != self._last:
            self._last, self._last_text = partition, self._spell(partition)
        self._batch[self._last_text] = place

    def settle(self) -> None:
        """After a batch: a connector may use the same objects for the next one."""
        for text, place in self._batch.items():
            self._seen[text] = None if place is None else place_text(dict(place))
        self._batch.clear()
        self._last = None

    def write(self, send: Send) -> dict[str, str | None]:
        """What was written. It is to be sent again as long as it is not `forgotten`."""
        self._load()  # how a partition is spelled there
        self._store.write(self._connector, self._seen, send)
        return dict(self._seen)

    def forget(self, written: Mapping[str, str | None]) -> None:
        """These are kept."""
        for text, place in written.items():
            if self._seen.get(text, "") == place:
                del self._seen[text]
            if place is None:
                self._load().pop(text, None)
            else:
                self._load()[text] = json.loads(place)

    def _spell(self, partition: Mapping[str, Any]) -> str:
        try:
            self._load()
            return self._store.spell(self._connector, partition)
        except AttributeError:
            raise ConnectError(f"a source partition must be a JSON object, not {partition!r}") from None

    def _load(self) -> dict[str, dict[str, Any]]:
        if self._kept is None:
            self._kept = dict(self._store.load(self._connector))
        return self._kept
