"""The next expected offset of each partition, so that repeated records are detected.

librdkafka may begin a partition again while it is being read. An answer that says where the partition begins and comes too late
(the partition was paused, given back or moved to another leader in the meantime) makes it ask once more, half a second later,
whatever it has been told and has read since then. It continues at that answer: at the partition's first record. (As of 2.16:
`rd_kafka_toppar_handle_Offset` calls `rd_kafka_toppar_offset_retry` for outdated answers in every state.)

A record is known by its offset and by the epoch of the leader that wrote it. One before our position and of an epoch that we have
reached is one that we have had. In a later epoch it is another one: the log was cut in between. And where the log ends before our
position it is not the log that we have read, but that of a topic which was made again, for example.
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from penstock.consumer.record import Place

log = logging.getLogger("penstock.consumer")

END_TIMEOUT_S: Final = 5.0


class _Position(NamedTuple):
    offset: int
    epoch: int
    """Of the last record before it; -1 where the cluster has no epochs."""


class Positions:
    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._known: dict[Place, _Position] = {}

    def forget(self, place: Place) -> None:
        self._known.pop(place, None)

    def advance(self, place: Place, message: Message) -> bool:
        """False when this record came before: the partition then continues where it was."""
        offset, epoch = message.offset() or 0, message.leader_epoch()
        epoch = -1 if epoch is None else epoch
        known = self._known.get(place)
        if (
            known is not None
            and offset < known.offset
            and epoch <= known.epoch
            and self._is_still_there(place)
        ):
            self._go_back_to(place, known.offset)
            return False
        self._known[place] = _Position(offset + 1, epoch)
        return True

    def _is_still_there(self, place: Place) -> bool:
        try:
            last = self._consumer.get_watermark_offsets(TopicPartition(*place), timeout=END_TIMEOUT_S)
        except KafkaException as error:
            log.info(
                "the end of partition %s of %s is not known: %s", place[1], place[0], error.args[0].str()
            )
            return True  # where it is not, the client finds that out, begins at the first record, and we ask again
        return last is None or last[1] >= self._known[place].offset

    def _go_back_to(self, place: Place, offset: int) -> None:
        topic, partition = place
        log.warning(
            "partition %s of %s was started again: it continues at offset %s", partition, topic, offset
        )
        try:
            self._consumer.seek(TopicPartition(topic, partition, offset))
        except KafkaException as error:
            # The next record comes before our position too, and is passed over like this one.
            log.info(
                "partition %s of %s cannot continue elsewhere: %s", partition, topic, error.args[0].str()
            )
