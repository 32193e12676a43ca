"""The doctor's findings, kept for a while: one examination at a time in each cluster, whoever asks for it."""

from __future__ import annotations

import asyncio
import time
from typing import Final, NamedTuple

from penstock.advice.doctor import Finding, examine
from penstock.client.clients import Connection

GOOD_FOR_S: Final = 300.0
LOOK_S: Final = 5.0
"""Between the two looks that rates come from."""


class Checkup(NamedTuple):
    at_s: float
    findings: tuple[Finding, ...]


class Checkups:
    def __init__(self) -> None:
        self._kept: dict[str, Checkup] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    def kept(self, cluster: str) -> Checkup | None:
        return self._kept.get(cluster)

    async def now(
        self, cluster: str, bootstrap: str, properties: dict[str, str], *, again: bool = False
    ) -> Checkup:
        """What is kept if it is not too old; with `again` only what was found since this was asked for."""
        asked_s = time.time()
        async with self._locks.setdefault(cluster, asyncio.Lock()):
            known = self._kept.get(cluster)
            oldest_s = asked_s if again else asked_s - GOOD_FOR_S
            if known is not None and known.at_s >= oldest_s:
                return known
            found = await asyncio.to_thread(lambda: examine(Connection(bootstrap, properties), look_s=LOOK_S))
            checkup = self._kept[cluster] = Checkup(time.time(), tuple(found))
            return checkup


CHECKUPS: Final = Checkups()
"""Of this process."""
