"""A request that is cut and whose answers are joined again is answered as if it were handled whole."""

from importlib import import_module

from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.requests.dispatch import Handler
from penstock.broker.requests.portions import Portion, cut, join
from penstock.wire.apis import APIS
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

ASKED = ("groups", "topics", "partition_indexes")
ANSWERED = ("groups", "topics", "partitions")

REQUESTS = st.lists(st.lists(st.integers(0, 7), max_size=4) | st.none(), min_size=1, max_size=4)


def request_of(shape: list[list[int] | None]) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=f"g{number}",
                topics=None
                if counts is None
                else [
                    OffsetFetchRequestTopics(name=f"t{place}", partition_indexes=list(range(count)))
                    for place, count in enumerate(counts)
                ],
            )
            for number, counts in enumerate(shape)
        ]
    )


def answer(request: OffsetFetchRequest) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        groups=[
            OffsetFetchResponseGroup(
                group_id=group.group_id,
                topics=[
                    OffsetFetchResponseTopics(
                        name=topic.name,
                        partitions=[
                            OffsetFetchResponsePartitions(partition_index=index)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in group.topics or ()
                ],
            )
            for group in request.groups
        ]
    )


def leaves(request: OffsetFetchRequest) -> int:
    return sum(
        max(1, sum(max(1, len(topic.partition_indexes)) for topic in group.topics or ()))
        for group in request.groups
    )


@given(REQUESTS, st.integers(1, 5))
def test_cut_and_joined_is_whole(shape: list[list[int] | None], size: int) -> None:
    request = request_of(shape)
    expected = answer(request)
    portions: list[Portion] = list(cut(request, ASKED, size=size))
    assert all(leaves(portion.request) <= size for portion in portions)
    whole = answer(portions[0].request)
    for portion, continues in portions[1:]:
        join(whole, answer(portion), ANSWERED, continues)
    assert whole == expected
    assert request == request_of(shape)


def test_an_error_of_a_later_portion_is_one_of_the_whole() -> None:
    first, second = cut(request_of([[3]]), ASKED, size=2)
    whole, more = answer(first.request), answer(second.request)
    more.groups[0].error_code = 16
    join(whole, more, ANSWERED, second.continues)
    assert whole.groups[0].error_code == 16


def test_the_fields_that_handlers_name_are_there() -> None:
    for api in APIS.values():
        handler = Handler(import_module(f"penstock.broker.handlers.{api.name}"))
        for portions in handler.portions:
            for kind, path in ((handler.request, portions.asked), (handler.response, portions.answered)):
                struct = kind
                for name in path:
                    assert struct is not None
                    (field,) = [each for each in struct.FIELDS if each[0] == name]
                    assert field[1].startswith("[]")
                    struct = field[6]
