"""What those who put load on a cluster need: values of test records, the pace of sending, and how long records took."""

import math
import random
import re
import time
from array import array
from collections.abc import Callable

from penstock.client.errors import UserError

Payload = Callable[[int], bytes]
"""The value of a record, from its number."""

SEED = 0
ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
TO_LETTERS = bytes(ALPHABET[byte % len(ALPHABET)] for byte in range(256))
MAX_SAMPLES = 500_000
# A shorter pause costs more than it is worth: records may be early by as much.
MIN_PAUSE_S = 0.002
# A pause in librdkafka does not see signals: it is ended this often to look.
MAX_PAUSE_S = 0.1


class RandomLetters:
    """The same in each run, so that two runs can be compared."""

    def __init__(self) -> None:
        self._random = random.Random(SEED)

    def take(self, size: int) -> bytes:
        return self._random.randbytes(size).translate(TO_LETTERS)


def random_payload(size: int) -> Payload:
    letters = RandomLetters()
    return lambda number: letters.take(size)


def monotonic_payload(number: int) -> bytes:
    return str(number).encode()


def chosen_payload(text: str, delimiter: str) -> tuple[Payload, int]:
    """One of the pieces of a text by chance, and how many there are. `delimiter` is a regular expression."""
    pieces = _pieces(text, delimiter)
    chosen = random.Random(SEED)
    return lambda number: chosen.choice(pieces), len(pieces)


def _pieces(text: str, delimiter: str) -> list[bytes]:
    """Without the empty ones at the end, as Java splits."""
    try:
        pieces = [piece.encode() for piece in re.split(delimiter, text)]
    except re.error as error:
        raise UserError(f"--payload-delimiter is no regular expression: {error}") from None
    while pieces and not pieces[-1]:
        pieces.pop()
    return pieces


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


def _never() -> bool:
    return False


class Throughput:
    """`per_s` below 0 is no limit; with 0 nothing follows the first record."""

    def __init__(self, per_s: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._clock = clock
        self._started_s = clock()

    def delay_s(self, sent: int) -> float:
        """How long after so many records the next one is due."""
        if self._per_s < 0:
            return 0.0
        if self._per_s == 0:
            return math.inf if sent else 0.0
        return self._started_s + sent / self._per_s - self._clock()

    def wait(self, sent: int, pause: Callable[[float], object], is_over: Callable[[], bool] = _never) -> None:
        """`pause` may return early, as a client's poll does when it has something to tell."""
        while not is_over():
            delay_s = self.delay_s(sent)
            if delay_s < MIN_PAUSE_S:
                return
            pause(min(delay_s, MAX_PAUSE_S))
