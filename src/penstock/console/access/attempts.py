"""How often a login may fail ◇: after a few failures each further one costs a wait that doubles.

Counted for the address and the name together, and more generously for each of them alone: one who tries many names, or has many
addresses, is slowed too, and cannot lock a user out for long. The table is bounded; what failed longest ago is forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

MAX_ENTRIES: Final = 4096
FORGOTTEN_AFTER_S: Final = 900.0

FREE_OF_PAIR, FREE_OF_ADDRESS, FREE_OF_NAME = 5, 20, 20
MAX_WAIT_OF_PAIR_S, MAX_WAIT_OF_ADDRESS_S, MAX_WAIT_OF_NAME_S = 300.0, 60.0, 15.0


class _Entry(NamedTuple):
    failures: int
    last_s: float


class Attempts:
    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()

    def wait_s(self, address: str, name: str, now_s: float) -> float:
        """0: it may be tried now."""
        return max(
            self._wait_s((address, name), FREE_OF_PAIR, MAX_WAIT_OF_PAIR_S, now_s),
            self._wait_s((address, ""), FREE_OF_ADDRESS, MAX_WAIT_OF_ADDRESS_S, now_s),
            self._wait_s(("", name), FREE_OF_NAME, MAX_WAIT_OF_NAME_S, now_s),
        )

    def failed(self, address: str, name: str, now_s: float) -> None:
        for key in {(address, name), (address, ""), ("", name)}:
            known = self._entries.pop(key, None)
            failures = 0 if known is None or now_s - known.last_s > FORGOTTEN_AFTER_S else known.failures
            self._entries[key] = _Entry(failures + 1, now_s)
            if len(self._entries) > MAX_ENTRIES:
                self._entries.popitem(last=False)

    def succeeded(self, address: str, name: str) -> None:
        """Takes back the failure that was counted before the check, and forgets those of the pair."""
        self._entries.pop((address, name), None)
        self._less((address, ""), ("", name))

    def undone(self, address: str, name: str) -> None:
        """Takes back the failure that was counted before a check that did not take place; those before it still count."""
        self._less((address, name), (address, ""), ("", name))

    def _less(self, *keys: tuple[str, str]) -> None:
        for key in keys:
            known = self._entries.get(key)
            if known is not None and known.failures > 1:
                self._entries[key] = known._replace(failures=known.failures - 1)
            else:
                self._entries.pop(key, None)

    def _wait_s(self, key: tuple[str, str], free: int, max_wait_s: float, now_s: float) -> float:
        entry = self._entries.get(key)
        if entry is None or entry.failures < free or now_s - entry.last_s > FORGOTTEN_AFTER_S:
            return 0.0
        wait_s = min(max_wait_s, 2.0 ** min(entry.failures - free, 10))
        return max(0.0, entry.last_s + wait_s - now_s)
