"""POST /topics/{topic}/records:batch: a few records, each with an id by which it is answered."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from penstock.rest import bodies, errors
from penstock.rest.options import RestOptions
from penstock.rest.v3.shapes import CLUSTER, CONTENT, Views
from penstock.rest.v3.writing import RECORD_FIELDS, RecordWriter
from penstock.web.call import Answer, Call
from penstock.web.errors import HttpError
from penstock.web.routes import Routes

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")
_OK: Final = 200
MULTI_STATUS: Final = 207


class BatchResource:
    def __init__(self, views: Views, options: RestOptions) -> None:
        self._views = views
        self._limit: int = options["api.v3.produce.batch.maximum.entries"]

    def add_to(self, routes: Routes) -> None:
        routes.add(
            "POST", f"{CLUSTER}/topics/{{topic}}/records:batch", self.produce, "Write a few records.",
            body="entries", content=CONTENT,
        )  # fmt: skip

    async def produce(self, call: Call) -> object:
        view = await self._views.of(call)
        writer = RecordWriter(view.access, view.links.cluster_id, call["topic"])
        entries = self._checked(await bodies.json_object(call, {"entries"}))
        await writer.partitions()
        sent: list[Any] = []
        for entry in entries:
            try:
                record = bodies.checked_object(
                    {name: value for name, value in entry.items() if name != "id"}, RECORD_FIELDS
                )
            except HttpError as error:
                sent.append(error)
            else:
                sent.append(await writer.send(record))
        successes, failures = [], []
        for entry, answer in zip(entries, sent, strict=True):
            outcome = answer.document() if isinstance(answer, HttpError) else orjson.loads(await answer)
            told = {"id": entry["id"], **outcome}
            if outcome["error_code"] == _OK:
                del told["error_code"]
                successes.append(told)
            else:
                failures.append(told)
        return Answer.json({"successes": successes, "failures": failures}, status=MULTI_STATUS)

    def _checked(self, given: dict[str, Any]) -> list[dict[str, Any]]:
        entries = bodies.items(given, "entries", [])
        if not entries:
            raise errors.bad_batch("Empty batch.")
        if len(entries) > self._limit:
            raise errors.bad_batch("Too many entries in batch.")
        ids = []
        for entry in entries:
            name = entry.get("id") if isinstance(entry, dict) else None
            if not isinstance(name, str) or not _ID.fullmatch(name):
                raise errors.bad_batch("Batch entry identifier is not a valid string.")
            ids.append(name)
        if len(set(ids)) != len(ids):
            raise errors.bad_batch("Batch entry IDs are not distinct.")
        return entries
