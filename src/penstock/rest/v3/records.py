"""POST /topics/{topic}/records: a stream of JSON objects, each answered in its turn while the connection stays open.

The answers flow while the request is still being sent. What is on its way is bounded: who does not read the answers is not read
from. An object that is no JSON, or no record, gets an error in its place and the stream goes on; after bytes that belong to no
object it ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, Final

import orjson

from penstock.rest import bodies, errors
from penstock.rest.access import Access
from penstock.rest.options import RestOptions
from penstock.rest.produce.turns import Turns
from penstock.rest.v3.json_stream import NotObjects, ObjectSplitter, TooLarge
from penstock.rest.v3.shapes import CLUSTER, CONTENT, Views
from penstock.rest.v3.writing import RECORD_FIELDS, RecordWriter, line
from penstock.web.call import Call, ClientGone, Stream
from penstock.web.errors import HttpError
from penstock.web.routes import Routes

MAX_ON_THEIR_WAY: Final = 10_000
"""Records that are not answered yet, or whose answers the client has not read."""
MAX_ANSWER_BYTES: Final = 64 << 10
NO_LIMIT: Final = 1 << 62

_Answers = asyncio.Queue[asyncio.Future[bytes] | None]


class RecordsResource:
    def __init__(self, views: Views, options: RestOptions) -> None:
        self._views = views
        self._options = options

    def add_to(self, routes: Routes) -> None:
        routes.add(
            "POST", f"{CLUSTER}/topics/{{topic}}/records", self.produce, "Write a stream of records.",
            body="records, one after the other", content=CONTENT, is_long=True,
        )  # fmt: skip

    async def produce(self, call: Call) -> object:
        view = await self._views.of(call)
        writer = RecordWriter(view.access, view.links.cluster_id, call["topic"])
        await writer.partitions()
        objects = self._objects(call)
        first = await anext(objects, None)
        if first is None:
            raise errors.invalid_payload("Request body is empty. Data is required.")
        return Stream(_answered(objects, first, writer, view.access))

    async def _objects(self, call: Call) -> AsyncIterator[dict[str, Any] | HttpError]:
        splitter = ObjectSplitter(call.max_body_bytes)
        limit, call.max_body_bytes = call.max_body_bytes, NO_LIMIT  # of one record, not of the stream
        until_s = time.monotonic() + self._options["streaming.connection.max.duration.ms"] / 1000
        try:
            async for chunk in call.chunks():
                for found in splitter.feed(chunk):
                    yield _record(found)
                if time.monotonic() > until_s:
                    yield HttpError(408, "Streaming connection open for longer than allowed")
                    return
            if not splitter.is_between:
                yield HttpError(400, "The last record is not complete.")
        except NotObjects:
            yield HttpError(400, "The body is not a stream of JSON objects.")
        except TooLarge:
            yield HttpError(413, f"A record is larger than {limit} bytes.")
        except ClientGone:
            return


def _record(found: bytes) -> dict[str, Any] | HttpError:
    try:
        return bodies.checked_object(orjson.loads(found), RECORD_FIELDS)
    except orjson.JSONDecodeError as error:
        return HttpError(400, f"The record is not JSON: {error}")
    except HttpError as error:
        return error


async def _answered(
    objects: AsyncIterator[dict[str, Any] | HttpError],
    first: dict[str, Any] | HttpError,
    writer: RecordWriter,
    access: Access,
) -> AsyncIterator[bytes]:
    with access.used():
        async for told in _answers_of(objects, first, writer):
            yield told


async def _answers_of(
    objects: AsyncIterator[dict[str, Any] | HttpError],
    first: dict[str, Any] | HttpError,
    writer: RecordWriter,
) -> AsyncIterator[bytes]:
    answers: _Answers = asyncio.Queue(MAX_ON_THEIR_WAY)
    reading = asyncio.create_task(_read(objects, first, writer, answers))
    try:
        while True:
            answer = await answers.get()
            if answer is None:
                break
            told = bytearray(await answer)
            is_last = False
            while not answers.empty() and len(told) < MAX_ANSWER_BYTES:  # those that are there go together
                answer = answers.get_nowait()
                if answer is None:
                    is_last = True
                    break
                if not answer.done():
                    yield bytes(told)
                    told.clear()
                told += await answer
            yield bytes(told)
            if is_last:
                break
        await reading
    finally:
        reading.cancel()


async def _read(
    objects: AsyncIterator[dict[str, Any] | HttpError],
    first: dict[str, Any] | HttpError,
    writer: RecordWriter,
    answers: _Answers,
) -> None:
    turns = Turns()

    async def take(record: dict[str, Any] | HttpError) -> None:
        if isinstance(record, HttpError):
            answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
            answer.set_result(line(record.document()))
        else:
            answer = await writer.send(record)
        await answers.put(answer)
        if turns.is_over():
            await turns.give_way()

    try:
        await take(first)
        async for record in objects:
            await take(record)
    except Exception:
        await answers.put(None)
        raise
    await answers.put(None)
