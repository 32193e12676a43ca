"""When a member that died is started again: after a pause that doubles, and not for ever. Pure: the caller has the clock."""

from __future__ import annotations

from typing import NamedTuple


class RestartPolicy(NamedTuple):
    first_pause_s: float = 1.0
    longest_pause_s: float = 30.0
    max_deaths: int = 5
    """So many deaths within `window_s` are too many: the member is given up."""
    window_s: float = 60.0
    """A member that lived longer than this begins with the first pause again."""


DEFAULT_POLICY = RestartPolicy()


class Deaths:
    """The deaths of one member, judged by its policy.

    A member that dies at once pauses for 1, 2, 4 and 8 seconds and is given up at its fifth death. One that lives for
    twenty seconds each time is never given up; its pauses grow to thirty seconds.
    """

    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._recent_s: list[float] = []
        self._in_a_row = 0

    def pause_s(self, now_s: float, *, lived_s: float | None) -> float | None:
        """For a death now: how long to wait before the next start; None when the member is given up. `lived_s` is None
        where nobody knows how long it lived."""
        policy = self._policy
        if lived_s is not None and lived_s > policy.window_s:
            self.forget()
        self._recent_s = [at_s for at_s in self._recent_s if now_s - at_s < policy.window_s] + [now_s]
        self._in_a_row += 1
        if len(self._recent_s) >= policy.max_deaths:
            return None
        doubled: float = policy.first_pause_s * 2 ** min(self._in_a_row - 1, 32)
        return min(doubled, policy.longest_pause_s)

    def forget(self) -> None:
        self._recent_s.clear()
        self._in_a_row = 0
