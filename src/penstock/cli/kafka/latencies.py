"""How long records took: average and maximum of all of them, percentiles of a bounded number."""

from array import array

MAX_SAMPLES = 500_000


class Latencies:
    """In milliseconds. Of `expected` records every n-th is kept, so that memory does not grow with a long test; with 0,
    for those who ask for no percentiles, none is."""

    def __init__(self, expected: int = 0, *, max_samples: int = MAX_SAMPLES) -> None:
        self.count = 0
        self.max_ms = 0.0
        self._total_ms = 0.0
        self._every = -(-expected // max_samples)
        self._samples = array("d")

    def add(self, latency_ms: float) -> None:
        if self._every and self.count % self._every == 0:
            self._samples.append(latency_ms)
        self.count += 1
        self._total_ms += latency_ms
        if latency_ms > self.max_ms:
            self.max_ms = latency_ms

    @property
    def average_ms(self) -> float:
        return self._total_ms / self.count if self.count else 0.0

    def percentiles_ms(self, *shares: float) -> list[int]:
        """For each share, such as 0.99: whole milliseconds, as Kafka's tools tell them."""
        if not self._samples:
            return [0] * len(shares)
        ordered = sorted(self._samples)
        return [int(ordered[min(len(ordered) - 1, int(share * len(ordered)))]) for share in shares]
