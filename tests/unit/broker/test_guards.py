"""The guards: a row for each API, and what the engine makes of a row."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.broker.access.authorizer import Authorizer
from penstock.broker.access.guards.engine import guarded
from penstock.broker.access.guards.records import may_not_read, may_not_write
from penstock.broker.access.guards.table import GUARDS
from penstock.broker.partitions.held_topic import HeldTopic
from penstock.broker.requests.later import Later
from penstock.config.loading import load
from penstock.metadata.image import ClusterImage
from penstock.model.acl import CLUSTER_NAME, Operation, Pattern, PatternType, Permission, ResourceType, Rule
from penstock.model.api_keys import ApiKey
from penstock.model.errors import ApiError, ErrorCode
from penstock.security.principals import Principal
from penstock.wire.apis import APIS
from penstock.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from penstock.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def run(answer: Any) -> Any:
    async def awaited() -> Any:
        return await answer

    return asyncio.run(awaited())


class World:
    """What the engine needs: a node with rules, and a call of alice."""

    def __init__(self, *rules: tuple[Operation, ResourceType, str], **options: str) -> None:
        self.config, _ = load({"authorizer.class.name": STANDARD, **options}, {})
        self.authorizer = Authorizer(self.config)
        self.image = ClusterImage()
        self.handled: list[Any] = []
        for operation, resource_type, name in rules:
            rule = Rule("User:alice", "*", operation, Permission.ALLOW)
            self.authorizer.set_rules(Pattern(resource_type, name, PatternType.LITERAL), [rule])

    def ask(self, request: Any, response: Any, answer: Any, *, version: int = 0) -> Any:
        call: Any = type("Call", (), {})()
        call.header = type("Header", (), {"api_key": request.API_KEY})()
        call.api_version, call.principal, call.host = version, Principal("User", "alice"), "10.0.0.1"

        def handle(node: Any, call: Any, request: Any) -> Any:
            self.handled.append(request)
            return answer(request)

        return guarded(handle, response, cast(Any, self), call, request)


def test_every_api_has_its_row() -> None:
    assert not [ApiKey(key).name for key in APIS if key not in GUARDS]


def test_a_member_without_read_on_its_group_is_refused_before_anything_is_done() -> None:
    world = World()
    with pytest.raises(ApiError) as refusal:
        world.ask(HeartbeatRequest(group_id="readers"), HeartbeatResponse, lambda _: HeartbeatResponse())
    assert refusal.value.code is ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert not world.handled


def test_whether_somebody_may_write_anywhere_is_looked_up_once_until_a_rule_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of ten thousands of rules all are looked through, which takes long for the loop."""
    world = World()
    looked: list[str] = []
    decide_any = world.authorizer.rules.decide_any

    def looking(principal: str, *asked: Any) -> bool:
        looked.append(principal)
        return decide_any(principal, *asked)

    monkeypatch.setattr(world.authorizer.rules, "decide_any", looking)

    def may_begin() -> bool:
        answer = world.ask(
            InitProducerIdRequest(transactional_id=None),
            InitProducerIdResponse,
            lambda _: InitProducerIdResponse(),
        )
        return answer.error_code == 0

    assert [may_begin() for _ in range(3)] == [False, False, False]
    assert looked == ["User:alice"]
    rule = Rule("User:alice", "*", Operation.WRITE, Permission.ALLOW)
    world.authorizer.set_rules(Pattern(ResourceType.TOPIC, "orders", PatternType.LITERAL), [rule])
    assert [may_begin() for _ in range(3)] == [True, True, True]
    assert looked == ["User:alice"] * 2


def delete_records(request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(partition_index=each.partition_index, low_watermark=7)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def wanted(*names: str) -> DeleteRecordsRequest:
    parts = [DeleteRecordsPartition(partition_index=index, offset=7) for index in (0, 1)]
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=name, partitions=parts) for name in names])


def test_what_is_refused_is_answered_in_its_place_and_the_rest_is_done() -> None:
    world = World((Operation.DELETE, ResourceType.TOPIC, "mine"))
    answer = world.ask(wanted("theirs", "mine", "others"), DeleteRecordsResponse, delete_records)
    assert [topic.name for topic in world.handled[0].topics] == ["mine"]
    assert [
        (topic.name, [(each.partition_index, each.low_watermark, each.error_code) for each in topic.partitions])
        for topic in answer.topics
    ] == [
        ("theirs", [(0, -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED), (1, -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)]),
        ("mine", [(0, 7, 0), (1, 7, 0)]),
        ("others", [(0, -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED), (1, -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)]),
    ]  # fmt: skip


def test_a_handler_is_not_asked_for_nothing() -> None:
    """In some requests an empty list means all."""
    world = World()
    answer = world.ask(wanted("theirs"), DeleteRecordsResponse, delete_records)
    assert not world.handled
    assert [topic.name for topic in answer.topics] == ["theirs"]


def test_plain_names_are_refused_too() -> None:
    world = World((Operation.DELETE, ResourceType.GROUP, "mine"))
    answer = world.ask(
        DeleteGroupsRequest(groups_names=["theirs", "mine"]),
        DeleteGroupsResponse,
        lambda request: DeleteGroupsResponse(
            results=[DeletableGroupResult(group_id=name) for name in request.groups_names]
        ),
    )
    assert [(each.group_id, each.error_code) for each in answer.results] == [
        ("theirs", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ("mine", 0),
    ]


def test_what_may_not_be_seen_is_left_out_of_an_answer_that_comes_later() -> None:
    async def later(request: ListGroupsRequest) -> ListGroupsResponse:
        return ListGroupsResponse(groups=[ListedGroup(group_id=name) for name in ("mine", "theirs")])

    world = World((Operation.READ, ResourceType.GROUP, "mine"))
    answer = run(world.ask(ListGroupsRequest(), ListGroupsResponse, lambda request: Later(later(request))))
    assert [group.group_id for group in answer.groups] == ["mine"]
    world = World((Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME))
    answer = run(world.ask(ListGroupsRequest(), ListGroupsResponse, lambda request: Later(later(request))))
    assert [group.group_id for group in answer.groups] == ["mine", "theirs"]


@pytest.mark.parametrize("entry", ["alice", "User:", ":alice", "User:bob;alice"])
def test_a_super_user_without_a_type_or_a_name_is_refused_by_name(entry: str) -> None:
    with pytest.raises(ValueError, match=r"super\.users: '.*' must have a type and a name"):
        World(**{"super.users": entry})


def test_records_are_guarded_from_the_moment_on_that_they_are_here() -> None:
    """Logs are opened before the image has their topic. Whoever knows its id by then may not read there at once."""
    topic_id = b"7" * 16
    held = HeldTopic("theirs", topic_id)
    world: Any = World()
    world.partitions = SimpleNamespace(topic={"theirs": held, topic_id: held}.get)
    call: Any = SimpleNamespace(principal=Principal("User", "alice"), host="10.0.0.1")
    request: Any = SimpleNamespace(replica_id=-1)
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert may_not_read(world, call, request, {topic_id}) == {topic_id: refused}
    assert may_not_write(world, call, [(topic_id, [])]) == {topic_id: refused}


def test_an_id_that_was_unknown_when_it_was_checked_is_unknown_for_the_whole_request() -> None:
    world: Any = World((Operation.ALL, ResourceType.TOPIC, "mine"))
    world.partitions = SimpleNamespace(topic={b"7" * 16: HeldTopic("mine", b"7" * 16)}.get)
    call: Any = SimpleNamespace(principal=Principal("User", "alice"), host="10.0.0.1")
    request: Any = SimpleNamespace(replica_id=-1)
    unknown = {b"8" * 16: ErrorCode.UNKNOWN_TOPIC_ID}
    assert may_not_read(world, call, request, {b"7" * 16, b"8" * 16}) == unknown
    assert may_not_write(world, call, [(b"7" * 16, []), (b"8" * 16, [])]) == unknown
