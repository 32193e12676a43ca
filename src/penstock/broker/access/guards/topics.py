"""Metadata, DescribeTopicPartitions, CreateTopics and DeleteTopics; and what brings back logs that were set aside."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from penstock.broker.access.guards.forms import Asker, Passage, changed, merged, struct_of, take_out
from penstock.model.acl import Operation, ResourceType
from penstock.model.errors import ErrorCode
from penstock.model.ids import NO_ID
from penstock.model.internal_topics import is_internal

if TYPE_CHECKING:
    from penstock.wire.messages.create_partitions import CreatePartitionsRequest
    from penstock.wire.messages.create_topics import CreateTopicsRequest
    from penstock.wire.messages.delete_topics import DeleteTopicsRequest
    from penstock.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
    from penstock.wire.messages.metadata import MetadataRequest

REFUSED: Final = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
NOT_THERE: Final = "This server does not host this topic-partition."
MESSAGE: Final = "Authorization failed."


def metadata(asker: Asker, request: "MetadataRequest", response: "type[Any]") -> Passage | None:
    """Describe on each topic; Create on the cluster or the topic where asking would create it. What is asked for by name and
    may not be seen looks the same whether it exists or not. Of all topics, the others are left out."""
    if request.topics is None or (asker.call.api_version == 0 and not request.topics):

        def leave_out(answer: Any) -> None:
            answer.topics = [topic for topic in answer.topics if _is_seen(asker, topic.name, tells=False)]

        return Passage(request, leave_out)
    kind: Any = struct_of(response, "topics")
    creates = request.allow_auto_topic_creation and asker.node.config.get("auto.create.topics.enable")
    refusals = []
    for topic in request.topics:
        name = asker.topic_name(topic)
        refusal = None
        if name is not None and not _is_seen(asker, name):
            refusal = kind(
                error_code=REFUSED, name=name if topic.topic_id == NO_ID else None, topic_id=topic.topic_id
            )
        elif name is not None and creates and not _exists(asker, name) and not _may_create(asker, name):
            refusal = kind(error_code=REFUSED, name=name, is_internal=is_internal(name))
        refusals.append(refusal)
    if not any(refusals):
        return None
    allowed = [topic for topic, refusal in zip(request.topics, refusals, strict=True) if refusal is None]

    def finish(answer: Any) -> None:
        answer.topics = merged(answer.topics if allowed else (), refusals)  # in version 0 none means all

    return Passage(changed(request, topics=allowed), finish)


def describe_partitions(
    asker: Asker, request: "DescribeTopicPartitionsRequest", response: "type[Any]"
) -> Passage | None:
    """Describe on each topic. Of all topics, the others are left out."""
    if not request.topics:
        topic_type: Any = struct_of(type(request), "topics")
        seen = [name for name in asker.node.image.topics if _is_seen(asker, name, tells=False)]
        wanted = [topic_type(name=name) for name in seen]
        return Passage(changed(request, topics=wanted) if wanted else None, lambda answer: None)
    first = request.cursor.topic_name if request.cursor is not None else ""
    names = sorted({topic.name for topic in request.topics})
    hidden = {name for name in names if not _is_seen(asker, name)}
    if not hidden:
        return None
    kind: Any = struct_of(response, "topics")
    refusals = [kind(error_code=REFUSED, name=name) for name in names if name in hidden and name >= first]
    allowed = [topic for topic in request.topics if topic.name not in hidden]

    def finish(answer: Any) -> None:
        answer.topics = [*answer.topics, *refusals]

    return Passage(changed(request, topics=allowed) if allowed else None, finish)


def restores(
    asker: Asker, request: "CreateTopicsRequest | CreatePartitionsRequest", response: "type[Any]"
) -> None:
    """Alter on the cluster where logs that were set aside are to come back: they are found by a topic's id, and would be in a
    topic of whatever name."""
    if any(topic.penstock_restored for topic in request.topics):
        asker.need_in_cluster(Operation.ALTER)


def create(asker: Asker, request: "CreateTopicsRequest", response: "type[Any]") -> Passage | None:
    """Create on the cluster or on the topic. Who has not DescribeConfigs on it is not told the configs of what is made."""
    kind: Any = struct_of(response, "topics")
    times_named = Counter(topic.name for topic in request.topics)
    in_cluster = asker.may_in_cluster(Operation.CREATE, tells=False)

    def refuse(topic: Any) -> Any:
        if in_cluster or times_named[topic.name] > 1 or _may_create(asker, topic.name):
            return None  # one that is named twice is refused for that
        return kind(name=topic.name, error_code=REFUSED, error_message=MESSAGE)

    passage = take_out(request, "topics", "topics", refuse)
    secret = {
        name
        for name in times_named
        if not asker.may(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name, tells=False)
    }
    if not secret:
        return passage

    def finish(answer: Any) -> None:
        for topic in answer.topics:
            if not topic.error_code and topic.name in secret:
                topic.topic_config_error_code = REFUSED
                topic.num_partitions = topic.replication_factor = -1
                topic.configs = ()
        if passage is not None:
            passage.finish(answer)

    return Passage(request if passage is None else passage.request, finish)


def delete(asker: Asker, request: "DeleteTopicsRequest", response: "type[Any]") -> Passage | None:
    """Delete on the topic, or on the cluster. Who asks by id, and may not describe the topic, is not told its name."""
    if asker.may_in_cluster(Operation.DELETE, tells=False):
        return None
    kind: Any = struct_of(response, "responses")

    def refuse(topic: Any) -> Any:
        if topic.name is not None and topic.topic_id != NO_ID:
            return None  # invalid
        name = asker.topic_name(topic)
        if name is None or (topic.name is None and topic.topic_id == NO_ID):
            return None  # unknown, or invalid
        is_seen, exists = _is_seen(asker, name), _exists(asker, name)
        if is_seen and asker.may(Operation.DELETE, ResourceType.TOPIC, name, tells=exists):
            return None
        if is_seen and not exists:  # answered here: it may be there by the time that the handler looks
            return kind(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error_message=NOT_THERE)
        is_told = is_seen or topic.topic_id == NO_ID
        return kind(name=name if is_told else None, topic_id=topic.topic_id, error_code=REFUSED)

    return take_out(request, "topics", "responses", _but_for_repeated(request.topics, refuse)) or take_out(
        request,
        "topic_names",
        "responses",
        _but_for_repeated(request.topic_names, lambda name: refuse(_named(request, name))),
    )


def _named(request: "DeleteTopicsRequest", name: str) -> Any:
    kind: Any = struct_of(type(request), "topics")
    return kind(name=name)


def _but_for_repeated(items: Any, refuse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """One that is named twice is refused for that."""
    times = Counter(_key(item) for item in items)
    return lambda item: None if times[_key(item)] > 1 else refuse(item)


def _key(item: Any) -> Any:
    return item if isinstance(item, str) else (item.name, item.topic_id)


def _is_seen(asker: Asker, name: str, *, tells: bool = True) -> bool:
    return asker.may(Operation.DESCRIBE, ResourceType.TOPIC, name, tells=tells)


def _exists(asker: Asker, name: str) -> bool:
    return asker.node.image.topic(name) is not None


def _may_create(asker: Asker, name: str) -> bool:
    return asker.may_in_cluster(Operation.CREATE, tells=False) or asker.may(
        Operation.CREATE, ResourceType.TOPIC, name
    )
