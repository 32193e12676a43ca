"""Groups are where Apache Kafka would look for them."""

import pytest

from penstock.coordination.placement import partition_for


@pytest.mark.parametrize(
    ("group_id", "partition"),
    [
        ("", 0),
        ("g1", 42),
        ("console-consumer-49432", 33),
        ("группа", 8),
        ("😀", 49),
        ("g" * 10_000, 32),  # longer than what is kept
        ("polygenelubricants", 0),  # its hash is the one int that has no absolute value
    ],
)
def test_a_group_has_the_partition_that_java_computes(group_id: str, partition: int) -> None:
    assert partition_for(group_id, 50) == partition
