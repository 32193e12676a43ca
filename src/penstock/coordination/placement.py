"""Which partition of its internal topic a coordinator keeps a key in. Kafka's rule, so that both read each other's
files."""

from functools import lru_cache
from typing import Final

KEPT_KEYS: Final = 8192
KEPT_KEY_LENGTH_MAX: Final = 128
"""Longer keys are worked out each time: what is kept has a bound in bytes, too."""


def partition_for(key: str, count: int) -> int:
    """The partition of a group or transactional id. It is asked for with every request, and each character counts, so that
    the answers for the last few thousand keys are kept."""
    return _kept(key, count) if len(key) <= KEPT_KEY_LENGTH_MAX else _work_out(key, count)


def _work_out(key: str, count: int) -> int:
    """`abs(hashCode) % count` with Java's hash of a string (over UTF-16 units) and 0 for the one int without
    abs."""
    code = 0
    units = key.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        code = (31 * code + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    if code == 0x80000000:
        return 0
    return (code if code < 0x80000000 else 0x100000000 - code) % count


_kept = lru_cache(maxsize=KEPT_KEYS)(_work_out)
