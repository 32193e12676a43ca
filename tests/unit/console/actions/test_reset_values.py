"""What a person writes into the dialogs of groups and topics."""

import pytest

from penstock.client.errors import UserError
from penstock.console.access.roles import ADMIN
from penstock.console.actions.groups import PlannedOffset
from penstock.console.pages.group_reset import parse_values
from penstock.console.pages.topics import parse_configs
from penstock.model.ids import TopicPartition
from tests.unit.console.access.test_acting import context_of

CONTEXT = context_of(ADMIN)[0]


def test_values_are_lines_of_topic_partition_and_offset() -> None:
    found = parse_values(CONTEXT, " orders:0=12 \n\na-b.c:10 = 7")
    assert found == {TopicPartition("orders", 0): 12, TopicPartition("a-b.c", 10): 7}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("orders=5", "'orders=5'"),
        ("orders:0", "'orders:0'"),
        ("orders:x=1", "'x'"),
        ("orders:0=many", "'many'"),
        ("orders:0=1\norders:0=2", "orders-0 is there twice"),
        ("  \n", "nothing to set"),
    ],
)
def test_what_is_no_value_is_told_with_the_line(text: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        parse_values(CONTEXT, text)


def test_configs_are_lines_of_name_and_value() -> None:
    assert parse_configs(CONTEXT, "a=b=c\n\n x = \n") == {"a": "b=c", "x": ""}
    with pytest.raises(UserError, match="'retention'"):
        parse_configs(CONTEXT, "retention")


def test_a_plan_says_what_is_read_again_and_what_is_left_out() -> None:
    orders = TopicPartition("orders", 0)
    assert PlannedOffset(orders, 10, 4).change == -6
    assert PlannedOffset(orders, 10, 15).change == 5
    assert PlannedOffset(orders, None, 15).change is None
