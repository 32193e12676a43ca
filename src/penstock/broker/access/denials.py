"""The log of refusals (`penstock.authorizer`), in Kafka's words, with a bound on what clients can make it grow.

Whoever may do nothing can still ask thousands of times in a second. Within a second a refusal is told MOST_EQUAL times, and of
one principal no more than MOST_LINES; how many more there were is told when the second is over. Long names are cut.
"""

import logging
from asyncio import AbstractEventLoop, TimerHandle
from collections import Counter
from typing import Final

from penstock.model.acl import Operation, ResourceType

log = logging.getLogger("penstock.authorizer")

MOST_LINES: Final = 50
"""Of one principal in a second."""
MOST_EQUAL: Final = 5
"""Of them that say the same."""
MOST_PRINCIPALS: Final = 1000
"""With lines of their own in a second."""
WINDOW_S: Final = 1.0
MAX_NAME: Final = 249
"""Characters, as many as a topic's name may have."""

_Refusal = tuple[str, str, str, str]


class Denials:
    def __init__(self, loop: AbstractEventLoop | None = None) -> None:
        """Without a loop, which tells when a second is over, nothing is left out."""
        self._loop = loop
        self._told: dict[str, Counter[_Refusal]] = {}
        self._left_out: Counter[str] = Counter()
        self._timer: TimerHandle | None = None

    def tell(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> None:
        principal, name = shortened(principal), shortened(name)
        if self._loop is not None:
            if self._timer is None:
                self._timer = self._loop.call_later(WINDOW_S, self._sum_up)
            if not self._has_room(principal, (host, operation.name, resource_type.name, name)):
                return
        log.info(
            "Principal = %s is Denied operation = %s from host = %s on resource = %s:%s",
            principal, operation.name, host, resource_type.name, name,
        )  # fmt: skip

    def _has_room(self, principal: str, refusal: _Refusal) -> bool:
        told = self._told.get(principal)
        if told is None:
            if len(self._told) >= MOST_PRINCIPALS:
                self._left_out[""] += 1
                return False
            told = self._told[principal] = Counter()
        if told[refusal] >= MOST_EQUAL or told.total() >= MOST_LINES:
            self._left_out[principal] += 1
            return False
        told[refusal] += 1
        return True

    def _sum_up(self) -> None:
        self._timer = None
        left_out, self._left_out = self._left_out, Counter()
        self._told.clear()
        for principal, count in left_out.items():
            log.info("Principal = %s is Denied %s more times within a second", principal or "(others)", count)


def shortened(name: str) -> str:
    """For a log: it says how long the name is where it is cut."""
    return name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}… ({len(name)} characters)"
