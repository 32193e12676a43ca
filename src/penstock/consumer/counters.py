"""The counters of a processor."""

from typing import NamedTuple


class Counters(NamedTuple):
    """What a processor has done since its start."""

    handled: int = 0  # records, those that became dead letters among them
    outputs: int = 0  # without dead letters
    dead_letters: int = 0
    retries: int = 0
    commits: int = 0  # of offsets, or of transactions
    aborts: int = 0
    rebalances: int = 0
