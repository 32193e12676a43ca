"""Requests that go to leaders: each of their partitions can be refused alone, and Fetch can answer with less than there is."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from penstock.model.api_keys import ApiKey
from penstock.model.errors import ErrorCode
from penstock.records.batch import iterate_headers
from penstock.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from penstock.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from penstock.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from penstock.wire.schema import ZERO_UUID, Message
from simulation.liar.stage import Leadership, Stage

Place = tuple[str | bytes, int]
"""Topic, by name or id as the request has it, and partition."""
LATEST: Final = -1
OFFSET_NOT_AVAILABLE_FROM: Final = (
    5  # ListOffsets; before that a leader that is not sure says LEADER_NOT_AVAILABLE
)
BY_ID_FROM: Final = {int(ApiKey.PRODUCE): 13, int(ApiKey.FETCH): 13}


class Form(NamedTuple):
    """Where an API has its topics and partitions."""

    topics: str
    partitions: str
    number: str
    answered_topics: str
    answered_partitions: str
    response: Callable[..., Message]
    topic_result: Callable[..., Any]
    result: Callable[[int, int], Any]


FORMS: Final[Mapping[int, Form]] = {
    ApiKey.PRODUCE: Form(
        "topic_data", "partition_data", "index", "responses", "partition_responses", ProduceResponse,
        lambda key, results: TopicProduceResponse(**_named(key, "name"), partition_responses=results),
        lambda index, code: PartitionProduceResponse(index=index, error_code=code, base_offset=-1, error_message=None),
    ),
    ApiKey.FETCH: Form(
        "topics", "partitions", "partition", "responses", "partitions", FetchResponse,
        lambda key, results: FetchableTopicResponse(**_named(key, "topic"), partitions=results),
        lambda index, code: PartitionData(
            partition_index=index, error_code=code, high_watermark=-1, last_stable_offset=-1, log_start_offset=-1, records=b""
        ),
    ),
    ApiKey.LIST_OFFSETS: Form(
        "topics", "partitions", "partition_index", "topics", "partitions", ListOffsetsResponse,
        lambda key, results: ListOffsetsTopicResponse(name=key, partitions=results),
        lambda index, code: ListOffsetsPartitionResponse(partition_index=index, error_code=code, timestamp=-1, offset=-1),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Form(
        "topics", "partitions", "partition", "topics", "partitions", OffsetForLeaderEpochResponse,
        lambda key, results: OffsetForLeaderTopicResult(topic=key, partitions=results),
        lambda index, code: EpochEndOffset(partition=index, error_code=code),
    ),
}  # fmt: skip


def _named(key: str | bytes, field: str) -> dict[str, Any]:
    return {"topic_id": key} if isinstance(key, bytes) else {field: key}


def _key(topic: Any) -> str | bytes:
    topic_id = getattr(topic, "topic_id", ZERO_UUID)
    if topic_id != ZERO_UUID:
        return bytes(topic_id)
    return str(getattr(topic, "name", None) or getattr(topic, "topic", ""))


class Leading:
    """One request to a leader."""

    def __init__(self, request: Any, version: int) -> None:
        self.request = request
        self._version = version
        self._form = FORMS[request.API_KEY]
        self.asked: Final[dict[Place, Any]] = {
            (_key(topic), getattr(one, self._form.number)): one
            for topic in getattr(request, self._form.topics)
            for one in getattr(topic, self._form.partitions)
        }
        self.refused: dict[Place, int] = {}

    @property
    def is_empty(self) -> bool:
        return self.refused.keys() >= self.asked.keys()

    def refuse_by_stage(self, stage: Stage, node_id: int) -> None:
        """What this node does not serve, and who asks by an epoch that is not this leader's."""
        for place, one in self.asked.items():
            post = Leadership(stage.name(place[0]), place[1])
            epoch = getattr(one, "current_leader_epoch", -1)
            if stage.forgets(node_id, post.topic):
                self.refuse(place, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif not stage.serves(node_id, post):
                self.refuse(place, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif 0 <= epoch < stage.holder(post).epoch:
                self.refuse(place, ErrorCode.FENCED_LEADER_EPOCH)
            elif epoch > stage.holder(post).epoch:
                self.refuse(place, ErrorCode.UNKNOWN_LEADER_EPOCH)
            elif not stage.is_sure(post) and getattr(one, "timestamp", 0) == LATEST:
                is_new = self._version >= OFFSET_NOT_AVAILABLE_FROM
                self.refuse(
                    place, ErrorCode.OFFSET_NOT_AVAILABLE if is_new else ErrorCode.LEADER_NOT_AVAILABLE
                )
            if epoch >= 0:
                one.current_leader_epoch = -1  # the broker behind us has epochs of its own

    def refuse(self, place: Place, code: int) -> None:
        by_id = isinstance(place[0], bytes) and code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self.refused.setdefault(place, ErrorCode.UNKNOWN_TOPIC_ID if by_id else code)

    def without_refused(self) -> Message:
        """The request with what is left of it."""
        form = self._form
        kept = []
        for topic in getattr(self.request, form.topics):
            key = _key(topic)
            left = [
                one
                for one in getattr(topic, form.partitions)
                if (key, getattr(one, form.number)) not in self.refused
            ]
            setattr(topic, form.partitions, left)
            if left:
                kept.append(topic)
        setattr(self.request, form.topics, kept)
        message: Message = self.request
        return message

    def answer(self, answered: Any | None) -> Message:
        """What the broker answered, and the refusals."""
        form = self._form
        response: Any = form.response() if answered is None else answered
        topics = []
        for topic in getattr(response, form.answered_topics):
            key = _key(topic)
            name = "partition_index" if hasattr(form.result(0, 0), "partition_index") else form.number
            left = [
                one
                for one in getattr(topic, form.answered_partitions)
                if (key, getattr(one, name)) not in self.refused
            ]
            setattr(topic, form.answered_partitions, left)
            if left:
                topics.append(topic)
        by_topic: dict[str | bytes, list[Any]] = {}
        for (key, index), code in self.refused.items():
            by_topic.setdefault(key, []).append(form.result(index, code))
        topics += [form.topic_result(key, results) for key, results in by_topic.items()]
        setattr(response, form.answered_topics, topics)
        message: Message = response
        return message


def hold_records_back(answer: Any) -> bool:
    """Takes the records out of a fetch answer, as when a slow store has them. True if there were any."""
    found = False
    for one in _results(answer):
        found = found or bool(one.records)
        one.records = b""
        if one.aborted_transactions:
            one.aborted_transactions = []
    return found


def hide_what_is_unsure(answer: Any, asked: Mapping[Place, Any], stage: Stage) -> bool:
    """A new leader does not know that what it has is committed: nothing is shown behind where a reader is."""
    hidden = False
    for topic in answer.responses:
        for one in topic.partitions:
            place = (_key(topic), one.partition_index)
            if one.error_code or place not in asked:
                continue
            if stage.is_sure(Leadership(stage.name(place[0]), place[1])):
                continue
            known = max(min(asked[place].fetch_offset, one.high_watermark), 0)
            hidden = True
            one.records = b""
            one.high_watermark = known
            one.last_stable_offset = min(one.last_stable_offset, known)
            if one.aborted_transactions:
                one.aborted_transactions = []
    return hidden


def cut_records(answer: Any, chance: random.Random) -> bool:
    """Cuts records anywhere behind the first batch, which Kafka sends whole or not at all. True if anything was cut."""
    was_cut = False
    for one in _results(answer):
        records = bytes(one.records or b"")
        first = next(iterate_headers(records), None)
        if first is None or first[1].size_bytes >= len(records):
            continue
        one.records = records[: chance.randrange(first[1].size_bytes, len(records))]
        was_cut = True
    return was_cut


def _results(answer: Any) -> list[Any]:
    return [one for topic in answer.responses for one in topic.partitions if not one.error_code]
