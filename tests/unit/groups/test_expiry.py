"""Looking for expired offsets takes no longer at a time than others can wait."""

from penstock.groups import expiry
from penstock.groups.options import GroupOptions
from penstock.groups.records import CommittedOffset, OffsetKey, write_offset, write_offset_key
from tests.unit.groups.harness import Harness

OPTIONS = GroupOptions(offsets_retention_ms=1_000, offsets_retention_check_interval_ms=10_000)


def harness_with_groups(count: int) -> Harness:
    harness = Harness(OPTIONS)
    for number in range(count):
        key = write_offset_key(OffsetKey(f"g{number}", "orders", 0))
        harness.shard.replay(key, write_offset(CommittedOffset(1, -1, "", 0)))
    return harness


def test_many_groups_are_looked_at_in_steps() -> None:
    harness = harness_with_groups(expiry.STEP_OFFSETS)
    outcome = harness.shard.on_alarm(expiry.EXPIRY_ALARM, 10_000)
    assert len(outcome.records) == expiry.STEP_OFFSETS // 2, "each group counts as one, beside its offsets"
    assert outcome.alarms == [(expiry.EXPIRY_ALARM, 10_000)], "the others follow at once"
    harness.do(outcome)
    outcome = harness.shard.on_alarm(expiry.EXPIRY_ALARM, 10_000)
    assert len(outcome.records) == expiry.STEP_OFFSETS // 2
    assert outcome.alarms == [(expiry.EXPIRY_ALARM, 20_000)]


def test_a_group_that_went_meanwhile_is_no_trouble() -> None:
    harness = harness_with_groups(expiry.STEP_OFFSETS)
    harness.do(harness.shard.on_alarm(expiry.EXPIRY_ALARM, 10_000))
    for number in range(expiry.STEP_OFFSETS):
        harness.shard.replay(write_offset_key(OffsetKey(f"g{number}", "orders", 0)), None)
    outcome = harness.shard.on_alarm(expiry.EXPIRY_ALARM, 10_000)
    assert outcome.records == []
