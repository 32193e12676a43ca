"""The batches of a produce request that begin a transaction in their partition: what the coordinator says about them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from penstock.broker.coordinators.admission import ClientLevel, Refusals
from penstock.broker.requests.later import Later, NowOrLater
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.records.batch import (
    ATTRIBUTES_AT,
    HEADER_SIZE,
    MAGIC,
    MAGIC_AT,
    TRANSACTIONAL_BIT,
    read_header,
)
from penstock.wire.produce import ProduceTopic

if TYPE_CHECKING:
    from typing import Protocol

    from penstock.broker.facets import WithPartitions, WithTransactions

    class Needs(WithPartitions, WithTransactions, Protocol): ...


Admission = Mapping[TopicPartition, ErrorCode] | ErrorCode
"""Where a transaction begins: NONE if the coordinator consents. Or why the whole request is refused."""
NO_ADMISSION: Final[Admission] = {}
_FLAGS_AT: Final = ATTRIBUTES_AT + 1
_DETAILS: Final = {
    ErrorCode.INVALID_TXN_STATE: "Partition was not added to the transaction",
    ErrorCode.NOT_ENOUGH_REPLICAS: "The transaction coordinator cannot say now whether the partition was added",
}


def admit_without_id(topics: Sequence[ProduceTopic]) -> Admission:
    """Who has no transactional id cannot write as part of a transaction, not even one that is open."""
    for _, batches in topics:
        for _, records in batches:
            if (
                records is not None
                and len(records) >= HEADER_SIZE
                and records[_FLAGS_AT] & TRANSACTIONAL_BIT
                and records[MAGIC_AT] == MAGIC
            ):
                return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return NO_ADMISSION


def admit(
    node: "Needs", transactional_id: str, topics: Sequence[ProduceTopic], client: ClientLevel
) -> NowOrLater[Admission]:
    """What the coordinator says about the partitions in which these batches begin a transaction."""
    asked: list[TopicPartition] = []
    producers: set[tuple[int, int]] = set()
    for key, batches in topics:
        topic = node.partitions.topic(key)
        for index, records in batches:
            if topic is None or records is None or len(records) < HEADER_SIZE:
                continue  # refused below
            header = read_header(records)
            is_part_of_one = header.magic == MAGIC and header.attributes & TRANSACTIONAL_BIT  # as above
            if not is_part_of_one or header.producer_id < 0:
                continue
            producers.add((header.producer_id, header.producer_epoch))
            try:
                partition = topic.partition(index)
            except ApiError:
                continue
            if not partition.has_open_transaction(header.producer_id, header.producer_epoch):
                asked.append(TopicPartition(topic.name, index))
    if len(producers) > 1:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if not asked:
        return NO_ADMISSION
    ((producer_id, producer_epoch),) = producers
    refusals = node.transactions.admit(
        transactional_id, asked, producer_id=producer_id, producer_epoch=producer_epoch, client=client
    )
    if isinstance(refusals, Later):
        return Later(_admission_later(refusals, asked))
    return _admission(refusals, asked)


def is_admitted(admission: Admission, topic_partition: TopicPartition) -> bool:
    """Whether the coordinator was asked about this partition, and consents. ApiError when it does not."""
    assert not isinstance(admission, ErrorCode)
    error = admission.get(topic_partition)
    if error:
        raise ApiError(error, _DETAILS.get(error))
    return error is not None


async def _admission_later(refusals: Later[Refusals], asked: list[TopicPartition]) -> Admission:
    return _admission(await refusals, asked)


def _admission(refusals: Refusals, asked: Iterable[TopicPartition]) -> Admission:
    return {topic_partition: refusals.get(topic_partition, ErrorCode.NONE) for topic_partition in asked}
