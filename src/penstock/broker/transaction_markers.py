"""Commit and abort markers into the partitions of this broker."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.model.internal_topics import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from penstock.broker.node import Node


def write_markers(
    node: "Node",
    partitions: Iterable[tuple[str, int]],
    *,
    producer_id: int,
    producer_epoch: int,
    committed: bool,
    coordinator_epoch: int,
    transaction_version: int,
) -> dict[TopicPartition, ErrorCode]:
    """Each partition has its own answer. The groups are told of markers that decide about their offsets."""
    results: dict[TopicPartition, ErrorCode] = {}
    for name, index in partitions:
        try:
            partition = node.partitions.get(name, index)
            partition.append_marker(
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                committed=committed,
                coordinator_epoch=coordinator_epoch,
                transaction_version=transaction_version,
            )
            if name == CONSUMER_OFFSETS:
                node.groups.transaction_ended(index, producer_id, committed=committed)
            error = ErrorCode.NONE
        except ApiError as refusal:
            error = refusal.code
        except OSError as fault:
            node.report_disk_fault(f"cannot write a marker to {name}-{index}", fault, partition)
            error = ErrorCode.KAFKA_STORAGE_ERROR
        results[TopicPartition(name, index)] = error
    return results
