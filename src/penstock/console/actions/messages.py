"""What a page does with messages: each function checks the role again, whatever the page shows.

Reading needs `read-messages` on the topic; exports are in the audit log. Writing and copying need `produce` on the
topic that is written to, and copying `read-messages` on the one that is read. Who may not see all of a topic may not
copy it: the copy would show what is hidden.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from penstock.client.clients import Connection
from penstock.client.errors import Refused, UserError
from penstock.client.schema_registry import SchemaRegistry
from penstock.client.schema_values import ValueReader
from penstock.console.access.actions import Action
from penstock.console.context import ClusterHandle, PageContext
from penstock.console.messages import produce as producing
from penstock.console.messages.decode import REGISTRY_TIMEOUT_S, Format, PartDecoder, Registry
from penstock.console.messages.jobs import JOBS, Job
from penstock.console.messages.model import Copy, Search, Source
from penstock.console.messages.produce import Encoder, NewRecord, Written
from penstock.console.messages.rows import Rows
from penstock.console.messages.sample import sample

if TYPE_CHECKING:
    from penstock.console.messages.copying import Copying
    from penstock.console.messages.detail import Detail
    from penstock.console.messages.scan import Scan
    from penstock.console.messages.tail import Tail

COPY_LOOK_S: Final = 0.1


class SubjectSchema(NamedTuple):
    """What the form for a value begins with."""

    id: int
    kind: str
    text: str
    sample: str


class _Registries(NamedTuple):
    client: SchemaRegistry
    reading: Registry


_known: WeakKeyDictionary[ClusterHandle, _Registries] = WeakKeyDictionary()


def source_of(context: PageContext) -> Source:
    return Source(bootstrap=context.cluster.bootstrap, properties=context.cluster.properties)


def rows_of(context: PageContext, topic: str, key: Format = Format.AUTO, value: Format = Format.AUTO) -> Rows:
    """How this visitor sees the records of a topic."""
    mask = context.mask(topic)
    registries = _registries(context.cluster)
    registry = None if registries is None else registries.reading
    return Rows(
        PartDecoder(topic, is_key=True, form=key, registry=registry, mask=mask),
        PartDecoder(topic, is_key=False, form=value, registry=registry, mask=mask),
        mask,
    )


async def ready(context: PageContext) -> None:
    """Loads what reads topics, in a thread: pyarrow and numba take most of a second and of the console's memory, and a console
    in which nobody looks at messages goes without."""
    await context.cluster.call(lambda _: import_module("penstock.console.messages.tail"))


async def start_search(context: PageContext, search: Search, rows: Rows, *, session: str) -> tuple[Scan, Job]:
    context.require(Action.READ_MESSAGES, search.topic)
    await ready(context)
    from penstock.console.messages.scan import Scan

    stopped = threading.Event()
    scan = Scan(source_of(context), search, rows, stopped)
    return scan, JOBS.start("search", scan.progress, stopped, scan.run, session=session)


async def start_tail(context: PageContext, search: Search, rows: Rows, *, session: str) -> tuple[Tail, Job]:
    context.require(Action.READ_MESSAGES, search.topic)
    await ready(context)
    from penstock.console.messages.tail import Tail

    stopped = threading.Event()
    tail = Tail(source_of(context), search, rows, stopped)
    return tail, JOBS.start("tail", tail.progress, stopped, tail.run, session=session)


async def load(context: PageContext, topic: str, partition: int, offset: int) -> Detail:
    context.require(Action.READ_MESSAGES, topic)

    def read() -> Detail:
        from penstock.console.messages.loading import load

        return load(source_of(context), topic, partition, offset)

    return await context.cluster.call(lambda _: read())


async def export(
    context: PageContext, search: Search, rows: Rows, form: str, *, limit: int, as_documents: bool, stopped: threading.Event
) -> Iterator[bytes]:  # fmt: skip
    """The chunks; whoever takes them does so in a thread, and sets `stopped` when nobody wants them any more."""

    await ready(context)
    from penstock.console.messages import export as exports

    async def begin() -> Iterator[bytes]:
        chunks = exports.export(
            source_of(context), search, rows, form, limit=limit, as_documents=as_documents, stopped=stopped
        )
        return _held(chunks, stopped, context.visitor.session_id)

    return await context.act(
        Action.READ_MESSAGES, search.topic, f"export up to {limit} messages as {form}", begin
    )


def _held(chunks: Iterator[bytes], stopped: threading.Event, session: str) -> Iterator[bytes]:
    """Counted among the long pieces of work for as long as somebody has it."""
    with JOBS.held("export", stopped, session=session):
        yield from chunks


def encoder(
    context: PageContext, topic: str, form: str, *, is_key: bool, schema_id: int | None = None
) -> Encoder:
    """Asks the registry: call it in a thread."""
    registries = _registries(context.cluster)
    registry = None if registries is None else registries.client
    return Encoder(form, topic, is_key=is_key, registry=registry, schema_id=schema_id)


async def produce(
    context: PageContext, topic: str, records: Callable[[], Sequence[NewRecord]]
) -> list[Written]:
    """`records` checks and encodes what the visitor wrote, in a thread; nothing is written where it raises."""
    context.require(Action.PRODUCE, topic)
    made = await context.cluster.call(lambda _: records())
    connection = Connection(context.cluster.bootstrap, dict(context.cluster.properties))
    count = len(made)
    return await context.act(
        Action.PRODUCE,
        topic,
        f"produce {count} message{'s' if count != 1 else ''}",
        lambda: context.cluster.call(lambda _: producing.produce(connection, topic, made)),
    )


async def subject_schema(context: PageContext, topic: str, *, is_key: bool) -> SubjectSchema | None:
    """The newest schema of the topic's subject; None where there is no registry, or no such subject."""
    registries = _registries(context.cluster)
    if registries is None:
        return None
    subject = f"{topic}-{'key' if is_key else 'value'}"

    def ask() -> SubjectSchema | None:
        try:
            found = registries.client.latest(subject)
        except Refused:
            return None
        schema = ValueReader(registries.client).schema(found.id).schema
        return SubjectSchema(
            found.id, found.kind, found.text, json.dumps(sample(schema), indent=2, ensure_ascii=False)
        )

    return await context.cluster.call(lambda _: ask())


async def start_copy(context: PageContext, copy: Copy, *, session: str) -> tuple[Copying, Job]:
    topic = copy.search.topic
    context.require(Action.READ_MESSAGES, topic)
    context.require(Action.PRODUCE, copy.target)
    if context.mask(topic) is not None:
        raise UserError(context.t("messages.copy_masked", topic=topic))
    await ready(context)
    from penstock.console.messages.copying import Copying
    from penstock.console.messages.matching import Matcher

    stopped = threading.Event()
    copying = Copying(source_of(context), copy, stopped)
    copying.use_documents(Matcher(copy.search.wanted, rows_of(context, topic).value.document))
    return copying, JOBS.start("copy", copying.progress, stopped, copying.run, session=session)


async def copied(
    context: PageContext, copy: Copy, begun: Callable[[Copying, Job], None], *, session: str
) -> Copying:
    """Until it has ended. `begun` gets what is running, to show it and to stop it. Refused where it failed."""

    async def run() -> Copying:
        copying, job = await start_copy(context, copy, session=session)
        begun(copying, job)
        try:
            while job.is_running:
                await asyncio.sleep(COPY_LOOK_S)
        finally:
            job.cancel()
        if job.progress.state == "failed":
            raise Refused(job.progress.error)
        return copying

    what = f"copy messages of {copy.search.topic} to it"
    return await context.act(Action.PRODUCE, copy.target, what, run)


def _registries(cluster: ClusterHandle) -> _Registries | None:
    if cluster.registry_url is None:
        return None
    found = _known.get(cluster)
    if found is None:
        client = SchemaRegistry(cluster.registry_url, _of_registry(cluster), timeout_s=REGISTRY_TIMEOUT_S)
        found = _known[cluster] = _Registries(client, Registry(client))
    return found


def _of_registry(cluster: ClusterHandle) -> dict[str, str]:
    return {name: value for name, value in cluster.properties.items() if name.startswith("schema.registry.")}
