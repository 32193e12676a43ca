"""Reports a log that cannot be read at some offset.

Clients get CORRUPT_MESSAGE, and a consumer or a follower asks for the same offset again, for ever. So the broker logs what is
wrong and what to do, at first and then every ten minutes. The metrics page and DescribeLogDirs (`penstock status`) show the
damage until it is gone.

Not detected: a wrong CRC in what consumers fetch, since the broker sends batches as they are. Followers check it.
"""

import logging
from typing import Final

from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import InvalidRecord
from penstock.storage.damage import OURS, Damage
from penstock.storage.log import Log

log = logging.getLogger("penstock.broker")

TELL_AGAIN_AFTER_MS: Final = 10 * 60 * 1000
OTHER_AFTER_MS: Final = 60 * 1000
"""Between two places of one log: consumers that each meet another one would have both told with every request."""


def report_damage(damaged: Log, offset: int, cause: str, broker_id: int = OURS) -> None:
    """Called each time that somebody meets it. `broker_id`: whose log it is."""
    now_ms = damaged.clock.now_ms()
    known = damaged.damage
    is_known = known is not None and (known.cause, known.broker_id) == (cause, broker_id)
    if known is not None and now_ms - known.told_ms < (TELL_AGAIN_AFTER_MS if is_known else OTHER_AFTER_MS):
        return
    found_ms = known.found_ms if known is not None and is_known else now_ms
    damaged.damage = Damage(offset, cause, broker_id, found_ms, told_ms=now_ms)
    if broker_id == OURS:
        log.error(
            "%s-%s: the log is damaged at offset %s: %s. Records behind that cannot be read. If another replica is in "
            "sync, stop this broker and move %s away: the broker fetches it again. Else restore it from a "
            "copy, or delete the records up to the damage. penstock log verify shows details",
            damaged.topic, damaged.partition, offset, cause, damaged.directory,
        )  # fmt: skip
    else:
        log.error(
            "%s-%s: this replica cannot follow, as the log of broker %s, its leader, is damaged at offset %s: %s. "
            "penstock log verify on that broker shows details",
            damaged.topic, damaged.partition, broker_id, offset, cause,
        )  # fmt: skip


def is_damage(error: Exception) -> bool:
    """Whether what a leader sent is not a record batch, or not as it was written."""
    if isinstance(error, ApiError):
        return error.code is ErrorCode.CORRUPT_MESSAGE
    return isinstance(error, InvalidRecord)


def report_leader(follower: Log, leader_id: int, cause: str) -> None:
    """The log of the leader, from which we fetch, is damaged where ours ends."""
    report_damage(follower, follower.end_offset, cause, leader_id)


def current_damage(damaged: Log, *, is_leader: bool) -> Damage | None:
    """None when there is none, or when it is behind: its records were deleted, or fetched after all."""
    damage = damaged.damage
    if damage is None:
        return None
    if damage.broker_id == OURS:
        is_behind = damage.offset < damaged.start_offset
    else:
        is_behind = is_leader or damage.offset < damaged.end_offset
    if is_behind:
        damaged.damage = None
        return None
    return damage
