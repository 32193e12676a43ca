"""Where a group is sent: new offsets for partitions, planned from what was asked for and what the logs hold.

Planning writes nothing. An offset outside of a log becomes the log's nearer end, and a note says so:
log 7…14, asked for 3 → 7 and "New offset (3) is lower than earliest offset …".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from penstock.admin.groups.requests import GroupRequests
from penstock.admin.offsets import EARLIEST, LATEST
from penstock.client.errors import UserError
from penstock.model.ids import TopicPartition

UNKNOWN_OFFSET = -1
DURATION = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?", re.I
)


class Target(NamedTuple):
    """`form` is one of earliest, latest, current, offset, shift, time; the last three have a value."""

    form: str
    value: int | None = None


_WITH_VALUE = ("offset", "shift", "time")
_FORMS = ("earliest", "latest", "current", *_WITH_VALUE)


class Plan(NamedTuple):
    offsets: dict[TopicPartition, int]
    notes: list[str]
    """Offsets that had to be moved into their logs."""
    fell_back: list[TopicPartition]
    """Partitions that hold nothing as late as the time asked for: they get their end."""


class NotThere(UserError):
    """A partition whose log cannot be asked."""


def plan(groups: GroupRequests, group_id: str, partitions: Iterable[TopicPartition], target: Target) -> Plan:
    wanted = list(partitions)
    if target.form not in _FORMS:
        raise UserError(f"'{target.form}' is not {', '.join(_FORMS[:-1])} or {_FORMS[-1]}")
    if target.value is None and target.form in _WITH_VALUE:
        raise UserError(f"a reset to '{target.form}' needs a value")
    value = target.value or 0
    if target.form == "earliest":
        return Plan(_asked(groups, wanted, EARLIEST, "starting"), [], [])
    if target.form == "latest":
        return Plan(_asked(groups, wanted, LATEST, "ending"), [], [])
    if target.form == "time":
        return _at_time(groups, wanted, value)
    if target.form == "offset":
        return within_logs(groups, dict.fromkeys(wanted, value))
    committed = groups.committed(group_id)
    if target.form == "current":
        without = _asked(groups, [one for one in wanted if one not in committed], LATEST, "ending")
        return Plan(
            {one: committed[one].offset if one in committed else without[one] for one in wanted}, [], []
        )
    for one in wanted:
        if one not in committed:
            raise UserError(
                f"Cannot shift offset for partition {one} since there is no current committed offset"
            )
    return within_logs(groups, {one: committed[one].offset + value for one in wanted})


def within_logs(groups: GroupRequests, offsets: dict[TopicPartition, int]) -> Plan:
    starts = _asked(groups, list(offsets), EARLIEST, "starting")
    ends = _asked(groups, list(offsets), LATEST, "ending")
    moved: dict[TopicPartition, int] = {}
    notes = []
    for partition, offset in offsets.items():
        if offset > ends[partition]:
            moved[partition] = ends[partition]
            side = "higher than latest"
        elif offset < starts[partition]:
            moved[partition] = starts[partition]
            side = "lower than earliest"
        else:
            moved[partition] = offset
            continue
        notes.append(
            f"New offset ({offset}) is {side} offset for topic partition {partition}. "
            f"Value will be set to {moved[partition]}"
        )
    return Plan(moved, notes, [])


def _at_time(groups: GroupRequests, partitions: list[TopicPartition], timestamp_ms: int) -> Plan:
    # A partition that could not be asked is no empty one: sent to its end, the group would skip what is in it.
    found = _asked(groups, partitions, timestamp_ms, "matching")
    fell_back = [one for one in partitions if found[one] == UNKNOWN_OFFSET]
    ends = _asked(groups, fell_back, LATEST, "ending")
    return Plan({one: ends[one] if one in ends else found[one] for one in partitions}, [], fell_back)


def _asked(
    groups: GroupRequests, partitions: list[TopicPartition], timestamp: int, which: str
) -> dict[TopicPartition, int]:
    found = groups.log_offsets(partitions, timestamp)
    for one in partitions:
        if one not in found:
            raise NotThere(f"Error getting {which} offset of topic partition: {one}")
    return {one: found[one] for one in partitions}


def parse_topic(word: str) -> tuple[str, list[int] | None]:
    """`orders` → all of its partitions (None); `orders:0,2` → these."""
    topic, colon, numbers = word.partition(":")
    if not colon:
        return topic, None
    if not numbers or ":" in numbers:
        raise UserError(f"Invalid topic arg '{word}', expected topic name and partitions")
    found = []
    for number in numbers.split(","):
        if not number.isascii() or not number.isdigit():
            raise UserError(f"Invalid partition '{number}' specified in topic arg '{word}'")
        found.append(int(number))
    return topic, found


def parse_datetime_ms(text: str) -> int:
    """`2026-11-16T08:00:00.000`, with or without milliseconds and a zone; without a zone it is UTC."""
    from datetime import UTC, datetime

    if "T" not in text:
        raise UserError("Error parsing timestamp. It does not contain a 'T' according to ISO8601 format")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(f'Unparseable date: "{text}"') from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def parse_duration_ms(text: str) -> int:
    """`PnDTnHnMnS`: PT1H30M is an hour and a half."""
    match = DURATION.fullmatch(text)
    if match is None or text[-1:] in "Tt" or not any(match.group(2, 4, 5, 6)):
        raise UserError("Text cannot be parsed to a Duration")
    sign, days, _, hours, minutes, seconds, fraction = match.groups()
    total_ms = 1000 * (
        int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    )
    fraction_ms = int((fraction or "").ljust(3, "0")[:3])
    total_ms += -fraction_ms if (seconds or "").startswith("-") else fraction_ms
    return -total_ms if sign == "-" else total_ms
