"""Messages of a topic: searched with progress and a stop, followed live, opened, written, copied and exported."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter
from nicegui import ui
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from penstock.client.errors import Refused, Unreachable, UserError, one_line
from penstock.console.access.actions import Action
from penstock.console.actions import messages as actions
from penstock.console.asking import NoSuchCluster, context_of
from penstock.console.clusters import lists
from penstock.console.clusters.lists import Wanted as WantedTopics
from penstock.console.context import Forbidden, PageContext
from penstock.console.messages import detail as details
from penstock.console.messages.asked import Asked
from penstock.console.messages.decode import commonest
from penstock.console.messages.jobs import Job
from penstock.console.messages.model import EXPORT_TYPES, Search
from penstock.console.messages.rows import Rows
from penstock.console.pages import layout, messages_taking, messages_writing
from penstock.console.pages.messages_bar import Bar
from penstock.console.pages.messages_table import Place, Table
from penstock.console.pages.parts import figures
from penstock.console.pages.parts.section import banner
from penstock.console.pages.screens import Screen

if TYPE_CHECKING:
    from penstock.console.context import Console
    from penstock.console.messages.scan import Scan
    from penstock.console.messages.tail import Tail

PATH: Final = "/{cluster}/topics/{topic}/messages"
LOOK_EVERY_S: Final = 0.3
TOPICS_SHOWN: Final = 50
SHOWN_WHILE_RUNNING: Final = 100


class _Messages:
    """The page of one topic in one browser. Its search, or tail, ends with the page."""

    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._topic = context.path["topic"]
        self._session = context.visitor.session_id or ui.context.client.id
        self._asked = Asked.of_query(context.query)
        self._scan: Scan | None = None
        self._tail: Tail | None = None
        self._starts = 0
        self._is_gone = False
        self._job: Job | None = None
        self._rows: Rows | None = None
        self._seen = -1
        can_copy = context.mask(self._topic) is None and context.may_somewhere(Action.PRODUCE)
        self._can_copy = can_copy
        self._bar = Bar(context, self._asked, self.start)
        self._table = Table(context, self._topic, self._load, can_select=can_copy)
        ui.context.client.on_delete(self._leave)

    def draw(self) -> None:
        context, t = self._context, self._context.t
        with layout.heading(self._topic, t("messages.title")):
            if context.may(Action.PRODUCE, self._topic):
                ui.button(t("messages.produce"), icon="edit", on_click=self._write).props(
                    'unelevated no-caps data-testid="produce-button"'
                )
            if self._can_copy:
                ui.button(t("messages.copy"), icon="content_copy", on_click=self._copy).props(
                    'outline no-caps data-testid="copy-button"'
                )
            ui.button(t("messages.export"), icon="download", on_click=self._export).props(
                'outline no-caps data-testid="export-button"'
            )
        if context.mask(self._topic) is not None:
            banner(context, t("messages.masked"), kind="info")
        self._bar.draw()
        self._draw_status()
        self._table.draw()
        self._timer = ui.timer(LOOK_EVERY_S, self._look, active=False)

    def _draw_status(self) -> None:
        t = self._context.t
        with ui.column().classes("w-full gap-1"):
            with ui.row().classes("w-full items-center gap-3 min-h-9"):
                self._status = ui.label().classes("console-soft console-figures grow min-w-0")
                self._status.props('role=status data-testid="status"')
                self._pause = ui.button(t("messages.pause"), icon="pause", on_click=self._toggle_pause)
                self._pause.props('outline dense no-caps padding="4px 12px" data-testid="hold-tail"')
                self._stop = ui.button(t("messages.stop"), icon="stop", on_click=self.stop)
                self._stop.props(
                    'outline dense no-caps color=negative padding="4px 12px" data-testid="stop-search"'
                )
            self._progress = (
                ui.linear_progress(0, show_value=False).props("rounded instant-feedback").classes("w-full")
            )
            self._problem = (
                ui.label().classes("console-bad break-words").props('role=alert data-testid="problem"')
            )
        for each in (self._pause, self._stop, self._progress, self._problem):
            each.set_visibility(False)

    async def start(self) -> None:
        """What the fields of the bar ask for."""
        context = self._context
        self.stop()
        self._problem.set_visibility(False)
        with layout.complaints(context):
            try:
                asked = self._bar.asked()
                search = asked.search(self._topic)
                self._rows = actions.rows_of(context, self._topic, *asked.formats())
                if not await self._begin(search, self._rows, is_live=asked.is_live):
                    return
            except UserError as error:
                self._complain(str(error))
                return
            self._asked, self._seen = asked, -1
            self._table.forget()
            ui.navigate.history.replace(layout.link(context, PATH, topic=self._topic, **asked.query()))
            self._timer.active = True
            self._look()

    async def _begin(self, search: Search, rows: Rows, *, is_live: bool) -> bool:
        """False where the visitor has asked for something else meanwhile, or has gone."""
        self._starts += 1
        mine = self._starts
        scan, tail = None, None
        if is_live:
            tail, job = await actions.start_tail(self._context, search, rows, session=self._session)
        else:
            scan, job = await actions.start_search(self._context, search, rows, session=self._session)
        if mine != self._starts or self._is_gone:
            job.cancel()
            return False
        self._scan, self._tail, self._job = scan, tail, job
        return True

    def _leave(self) -> None:
        self._is_gone = True
        self.stop()

    def stop(self) -> None:
        if self._job is not None:
            self._job.cancel()

    def _look(self) -> None:
        running, job, rows = self._tail or self._scan, self._job, self._rows
        if running is None or job is None or rows is None:
            return
        is_running = job.is_running
        if running.top.changes != self._seen or not is_running:
            self._seen = running.top.changes
            # All of thousands of rows, a few times a second, would be megabytes: they come when the search has ended.
            found = running.top.rows()[: SHOWN_WHILE_RUNNING if is_running else None]
            self._table.show(found, rows, empty=self._empty(is_running=is_running))
        self._status.set_text(self._said(running, is_running=is_running))
        is_live = self._tail is not None
        self._progress.set_visibility(is_running and not is_live)
        self._progress.set_value(running.progress.fraction)
        self._stop.set_visibility(is_running)
        self._pause.set_visibility(is_running and is_live)
        if not is_running:
            self._timer.active = False
            if running.progress.state == "failed":
                self._complain(running.progress.error)

    def _complain(self, message: str) -> None:
        self._problem.set_text(one_line(message))
        self._problem.set_visibility(True)

    def _empty(self, *, is_running: bool) -> str:
        t = self._context.t
        if self._job is not None and self._job.progress.state == "failed":
            return t("messages.not_read")
        if self._tail is not None and is_running:
            return t("messages.waiting")
        return t("messages.not_yet") if is_running else t("messages.none")

    def _said(self, running: Scan | Tail, *, is_running: bool) -> str:
        t, progress = self._context.t, running.progress
        words = {
            "records": figures.count(progress.counts.offsets),
            "total": figures.count(progress.total),
            "bytes": figures.size(progress.counts.bytes),
            "rate": figures.size(progress.counts.bytes / max(0.001, progress.elapsed_s)),
            "found": figures.count(progress.matched),
            "shown": figures.count(len(running.top.rows())),
            "elapsed": figures.duration(progress.elapsed_s),
        }
        said = [t(self._words(running, is_running=is_running), **words)]
        kind = commonest(row.value.kind for row in running.top.rows()[:200])
        if kind and not is_running:
            said.append(t("messages.mostly", kind=kind))
        if self._tail is not None and self._tail.skipped:
            said.append(t("messages.skipped", count=figures.count(self._tail.skipped)))
        if progress.counts.deleted:
            said.append(t("messages.deleted", count=figures.count(progress.counts.deleted)))
        return " · ".join(said)

    def _words(self, running: Scan | Tail, *, is_running: bool) -> str:
        if self._tail is not None and is_running:
            return "messages.status_paused" if self._tail.is_paused else "messages.status_live"
        if is_running:
            return "messages.status_running"
        if running.progress.state != "done":
            return "messages.status_stopped"
        if (
            running.progress.counts.offsets < running.progress.total
            and not self._asked.wanted().is_everything
        ):
            return "messages.status_early"
        return "messages.status_plain" if self._asked.wanted().is_everything else "messages.status_done"

    def _toggle_pause(self) -> None:
        tail = self._tail
        if tail is None:
            return
        is_paused = tail.is_paused
        (tail.resume if is_paused else tail.pause)()
        self._pause.set_text(self._context.t("messages.pause" if is_paused else "messages.resume"))
        self._pause.props(f"icon={'pause' if is_paused else 'play_arrow'}")

    async def _load(self, place: Place) -> details.Detail:
        return await actions.load(self._context, self._topic, *place)

    async def _write(self) -> None:
        await messages_writing.write(self._context, self._topic, self._written)

    async def _written(self) -> None:
        if self._job is None or not self._job.is_running:
            await self.start()

    async def _copy(self) -> None:
        await messages_taking.copy(
            self._context, self._topic, self._bar.asked(), self._table.selected, session=self._session
        )

    async def _export(self) -> None:
        await messages_taking.export(self._context, self._topic, self._bar.asked())


async def build(context: PageContext) -> None:
    context.require(Action.READ_MESSAGES, context.path["topic"])
    page = _Messages(context)
    page.draw()
    ui.timer(0.01, page.start, once=True)


async def build_choice(context: PageContext) -> None:
    """Which topic: the menu leads here."""
    t = context.t
    with layout.heading(t("messages.title"), t("messages.choose")):
        pass
    field = ui.input(placeholder=t("messages.search_topics"), value=context.query.get("search", ""))
    field.props(f'dense outlined clearable autofocus debounce=150 data-testid="search" {layout.SEARCH}')
    field.props(f'aria-label="{t("messages.search_topics")}"').classes("w-full max-w-md")
    box = ui.column().classes("w-full gap-1 console-card p-2").props('data-testid="topics"')

    shown: list[tuple[str, int | None]] | None = None

    def show() -> None:
        nonlocal shown
        view = context.cluster.snapshot.latest
        if view is None:
            return
        wanted = WantedTopics(
            search=str(field.value or ""), page_size=TOPICS_SHOWN, internal=bool(field.value)
        )
        page = lists.topics(
            view.topics.values(), wanted, may_see=lambda name: context.may(Action.READ_MESSAGES, name)
        )
        found = [(row.name, row.records) for row in page.rows]
        if found != shown:
            shown = found
            box.clear()
            with box:
                _choices(context, found, page.total - len(found))

    with box:
        ui.label(t("messages.loading")).classes("console-soft p-2")
    field.on_value_change(show)
    show()
    ui.timer(1.0, show)


def _choices(context: PageContext, topics: list[tuple[str, int | None]], more: int) -> None:
    t = context.t
    for name, records in topics:
        with ui.link(target=layout.link(context, PATH, topic=name)).classes("console-item justify-between"):
            ui.label(name).classes("min-w-0 break-all")
            ui.label(figures.count(records)).classes("console-soft console-figures")
    if not topics:
        ui.label(t("messages.no_topics")).classes("console-soft p-2")
    if more > 0:
        ui.label(t("messages.more_topics", count=figures.count(more))).classes("console-soft p-2")


def routes(console: Console) -> APIRouter:
    """Downloads: one key or value, and exports."""
    router = APIRouter()

    @router.get(PATH + "/part")
    async def download(request: Request) -> Response:
        return await _answered(console, request, _one_part)

    @router.get(PATH + "/export")
    async def exported(request: Request) -> Response:
        return await _answered(console, request, _export)

    return router


async def _answered(console: Console, request: Request, answer: Any) -> Response:
    try:
        found: Response = await answer(context_of(console, request))
        return found
    except Forbidden as error:
        return _refusal(403, error)
    except NoSuchCluster as error:
        return _refusal(404, error)
    except UserError as error:
        return _refusal(400, error)
    except (Refused, Unreachable) as error:
        return _refusal(502, error)


def _refusal(status: int, error: Exception) -> Response:
    return JSONResponse({"error_code": status, "message": one_line(error)}, status_code=status)


async def _one_part(context: PageContext) -> Response:
    """As bytes; as text where something of the topic is hidden from this visitor."""
    topic, query = context.path["topic"], context.query
    part, place = query.get("part", "value"), (query.get("partition", ""), query.get("offset", ""))
    if part not in ("key", "value"):
        raise UserError(f"there is no part {part[:20]!r}: there are key and value")
    if not all(each.isdecimal() and len(each) < 19 for each in place):
        raise UserError("partition and offset are numbers")
    partition, offset = int(place[0]), int(place[1])
    found = await actions.load(context, topic, partition, offset)
    rows = actions.rows_of(context, topic)
    data = found.record.key if part == "key" else found.record.value
    if data is None:
        raise UserError(f"the {part} is null")
    name = f"{topic}-{partition}-{offset}-{part}"
    if rows.mask is not None:
        text = await context.cluster.call(lambda _: details.whole_text(found, rows, of_key=part == "key"))
        return _file(text.encode("utf-8", "replace"), f"{name}.txt", "text/plain; charset=utf-8")
    return _file(data, f"{name}.bin", "application/octet-stream")


async def _export(context: PageContext) -> Response:
    query, topic = context.query, context.path["topic"]
    asked = Asked.of_query(query)
    form = query.get("form", "jsonl")
    limit = query.get("records", "10000")
    if not limit.isdecimal():
        raise UserError(f"records is a number, not '{limit[:20]}'")
    search: Search = asked.search(topic)
    rows = actions.rows_of(context, topic, *asked.formats())
    stopped = threading.Event()
    chunks = await actions.export(
        context, search, rows, form, limit=int(limit[:9]), as_documents=query.get("documents") == "1", stopped=stopped
    )  # fmt: skip
    # The first chunk before the answer begins: what goes wrong at once is told by its status.
    first = await asyncio.to_thread(next, chunks, b"")
    headers = {"Content-Disposition": _disposition(f"{topic}.{form}"), "Cache-Control": "no-store"}
    return StreamingResponse(
        _streamed(first, chunks, stopped), media_type=EXPORT_TYPES[form], headers=headers
    )


async def _streamed(first: bytes, chunks: Iterator[bytes], stopped: threading.Event) -> AsyncIterator[bytes]:
    try:
        yield first
        while chunk := await asyncio.to_thread(next, chunks, b""):
            yield chunk
    finally:
        stopped.set()  # also when the browser has gone


def _file(data: bytes, name: str, kind: str) -> Response:
    headers = {"Content-Disposition": _disposition(name), "Cache-Control": "no-store"}
    return Response(data, media_type=kind, headers=headers)


def _disposition(name: str) -> str:
    """Topics have names without blanks or quotes."""
    plain = "".join(each if each.isascii() and (each.isalnum() or each in "._-") else "_" for each in name)
    return f'attachment; filename="{plain}"'


SCREENS = (
    Screen("messages", "/{cluster}/messages", "messages.title", "mail", build_choice),
    Screen("topic-messages", PATH, "messages.title", "mail", build, in_menu=False),
)
