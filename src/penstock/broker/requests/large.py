"""Requests that are too large to be read or answered in one step of the loop.

A request of 8 MiB can hold 600,000 small structs, and reading them takes half a second. So a thread reads whatever is larger than
a few pages, and writes the answer to it; the loop handles it a portion at a time (`portions`). Meanwhile the connection is held:
a client's requests are handled in the order in which they came.
"""

from asyncio import Future, Lock, sleep
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from penstock.broker.requests.portions import PORTION, Portion, Portions, cut, join, of_request
from penstock.wire import codec
from penstock.wire.errors import Malformed
from penstock.wire.framing import RequestHeader
from penstock.wire.schema import Message, Struct

if TYPE_CHECKING:
    from typing import Protocol

    from penstock.broker.facets import WithLoop, WithPools

    class Needs(WithLoop, WithPools, Protocol): ...


LARGE_BYTES: Final = 16 * 1024
"""Larger requests are read by a thread. Smaller ones take a few milliseconds at worst, and usually far less."""
MAX_FRAME_BYTES: Final = 8 * 1024 * 1024
"""Bound on requests that become objects: a message of tiny structs takes 40 times its size. Produce and Fetch do not."""
MAX_ELEMENTS: Final = 100_000
"""Bound on all lists of a client's request together: the partitions of a large cluster."""

Answer = Message | None


class LargeRequest(NamedTuple):
    message: Message
    elements: int
    frame: bytes


class LargeRequests:
    def __init__(self, node: "Needs") -> None:
        self._node = node
        self._one_read = Lock()  # they would take the interpreter from each other, and memory from everybody

    async def read(self, kind: type[Message], header: RequestHeader, frame: memoryview) -> LargeRequest:
        """Malformed when it is none, or too large."""
        if len(frame) > MAX_FRAME_BYTES:
            raise Malformed(
                f"{len(frame)} bytes are more than the {MAX_FRAME_BYTES} that such a request may have"
            )
        async with self._one_read:
            return await self._node.pools.codecs.run(_read, kind, header, frame)

    async def begin(
        self,
        handle: Callable[[Any], Coroutine[Any, Any, Answer]],
        request: LargeRequest,
        portions: tuple[Portions, ...],
    ) -> Coroutine[Any, Any, Answer]:
        """Returns when the last portion has begun; what it returns brings the whole answer."""
        found = of_request(portions, request.message) if request.elements > PORTION else None
        pieces = [Portion(request.message, 0)] if found is None else cut(request.message, found.asked)
        answers: list[tuple[Future[Answer], int]] = []
        for portion, continues in pieces:
            answers.append((self._node.loop.create_task(handle(portion)), continues))
            await sleep(0)  # also for the task to begin
        return _joined(answers, () if found is None else found.answered)


def _read(kind: type[Message], header: RequestHeader, frame: memoryview) -> LargeRequest:
    data = bytes(frame)
    message, _ = codec.decode(kind, header.api_version, data, header.body_offset)
    elements = count_elements(message)
    if elements > MAX_ELEMENTS and not header.api.between_brokers:
        raise Malformed(f"it has {elements} elements, and such a request may have {MAX_ELEMENTS}")
    return LargeRequest(message, elements, data)


def count_elements(struct: Struct) -> int:
    """Of all lists in a message."""
    count = 0
    for name in struct.__slots__:
        value = getattr(struct, name)
        if isinstance(value, list):
            count += len(value)
            if value and isinstance(value[0], Struct):
                count += sum(map(count_elements, value))
        elif isinstance(value, Struct):
            count += count_elements(value)
    return count


async def _joined(answers: list[tuple["Future[Answer]", int]], path: tuple[str, ...]) -> Answer:
    whole: Answer = None
    for answer, continues in answers:
        part = await answer
        if part is None:
            return None
        if whole is None:
            whole = part
        else:
            join(whole, part, path, continues)
    return whole
