"""How often and for how long clients were told to wait, for the metrics page."""

from collections.abc import Iterator


class ThrottleTimes:
    def __init__(self) -> None:
        self._waits: dict[str, tuple[int, int]] = {}

    def note(self, quota: str, wait_ms: int) -> None:
        if wait_ms > 0:
            count, total_ms = self._waits.get(quota, (0, 0))
            self._waits[quota] = (count + 1, total_ms + wait_ms)

    def of_each(self) -> Iterator[tuple[str, int, int]]:
        """The quota by Kafka's name (`Produce`), how often somebody had to wait, and for how long together, in milliseconds."""
        for quota, (count, total_ms) in sorted(self._waits.items()):
            yield quota, count, total_ms
