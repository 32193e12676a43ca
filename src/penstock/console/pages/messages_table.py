"""The table of messages: a line for each, which opens to all that is known. All data are texts in the rows."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from nicegui import ui
from nicegui.events import GenericEventArguments

from penstock.console.context import PageContext
from penstock.console.messages import detail as details
from penstock.console.messages.model import Cell, Row
from penstock.console.messages.rows import Rows
from penstock.console.pages import layout, login
from penstock.console.pages.parts import figures

PART: Final = "/{cluster}/topics/{topic}/messages/part"
MAX_OPEN: Final = 20
PAGE_ROWS: Final = 50
Place = tuple[int, int]
"""Partition and offset."""

_BODY: Final = """
<q-tr :props="props" class="cursor-pointer" tabindex="0" role="row" :data-testid="'message-' + props.row.id"
  :aria-expanded="props.row.open ? 'true' : 'false'"
  @click="$parent.$emit('open', props.row.id)" @keydown.enter.prevent="$parent.$emit('open', props.row.id)"
  @keydown.space.prevent="$parent.$emit('open', props.row.id)">
  <q-td auto-width class="pr-0" @click.stop @keydown.stop v-if="props.row.selectable">
    <q-checkbox v-model="props.selected" dense :aria-label="props.row.id" /></q-td>
  <q-td v-else-if="props.row.may_select" auto-width></q-td>
  <q-td class="whitespace-nowrap align-top"><span class="console-soft message-wide-text">{{ props.row.date }}&nbsp;</span
    ><span>{{ props.row.time }}</span>
    <div class="console-soft text-xs message-narrow">{{ props.row.p }} / {{ props.row.o }}</div></q-td>
  <q-td class="text-right message-wide align-top">{{ props.row.p }}</q-td>
  <q-td class="text-right message-wide align-top">{{ props.row.o }}</q-td>
  <q-td class="align-top"><div class="console-mono message-line message-key">
    <i v-if="props.row.key_none" class="console-soft">{{ props.row.key_none }}</i>
    <span v-else>{{ props.row.key }}</span></div></q-td>
  <q-td class="align-top w-full message-value-cell"><div class="console-mono message-line">
    <span v-if="props.row.badge" class="message-kind q-mr-sm">{{ props.row.badge }}</span>
    <i v-if="props.row.value_none" class="console-soft">{{ props.row.value_none }}</i>
    <span v-else>{{ props.row.value }}</span></div>
    <div v-if="props.row.headers" class="message-line console-soft text-xs">{{ props.row.headers }}</div></q-td>
  <q-td class="text-right whitespace-nowrap message-wide align-top">{{ props.row.size }}</q-td>
</q-tr>
<q-tr v-if="props.row.open" :props="props" class="message-detail" :data-testid="'detail-' + props.row.id">
  <q-td colspan="100%" class="whitespace-normal"><div class="message-sheet">
    <div v-if="!props.row.detail" class="console-soft">{{ props.row.loading }}</div>
    <template v-else>
      <div v-if="props.row.detail.problem" class="console-bad">{{ props.row.detail.problem }}</div>
      <div v-for="part in props.row.detail.parts" :key="part.name" class="q-mb-md">
        <div class="row items-center no-wrap q-gutter-x-sm q-mb-xs">
          <span class="text-weight-medium">{{ part.label }}</span>
          <span class="message-kind">{{ part.kind }}</span>
          <span class="console-soft text-xs">{{ part.about }}</span>
          <q-btn v-if="part.text" flat round dense size="sm" icon="content_copy" :aria-label="part.copy" :title="part.copy"
            :data-testid="'copy-' + part.name" @click.stop="$parent.$emit('copy', [props.row.id, part.name])" />
          <a v-if="part.href" :href="part.href" class="text-primary text-xs" download
            :data-testid="'download-' + part.name">{{ part.download }}</a>
        </div>
        <div v-if="part.problem" class="console-warn text-xs q-mb-xs">{{ part.problem }}</div>
        <pre v-if="part.text" class="console-mono message-text" tabindex="0" :data-testid="'text-' + part.name"
          >{{ part.text }}</pre>
        <div v-if="part.cut" class="console-soft text-xs">{{ part.cut }}</div>
      </div>
      <div v-if="props.row.detail.headers.length" class="q-mb-md">
        <div class="text-weight-medium q-mb-xs">{{ props.row.detail.headers_label }}</div>
        <table class="message-facts"><tbody><tr v-for="(one, at) in props.row.detail.headers" :key="at">
          <th scope="row" class="console-mono">{{ one[0] }}</th><td class="console-mono">{{ one[1] }}</td></tr></tbody></table>
      </div>
      <table class="message-facts"><tbody><tr v-for="one in props.row.detail.facts" :key="one[0]">
        <th scope="row">{{ one[0] }}</th><td>{{ one[1] }}</td></tr></tbody></table>
      <q-btn v-if="props.row.detail.parts.length" flat dense no-caps icon="content_copy" :label="props.row.detail.copy"
        class="q-mt-sm" data-testid="copy-message" @click.stop="$parent.$emit('copy', [props.row.id, 'message'])" />
    </template></div></q-td>
</q-tr>
"""


class Table:
    """`load` reads one message again, and `copy` puts a text on the clipboard."""

    def __init__(
        self,
        context: PageContext,
        topic: str,
        load: Callable[[Place], Awaitable[details.Detail]],
        *,
        can_select: bool,
    ) -> None:
        self._context = context
        self._topic = topic
        self._load = load
        self._can_select = can_select
        self._rows: Sequence[Row] = ()
        self._open: dict[Place, dict[str, Any] | None] = {}
        self._loaded: dict[Place, details.Detail] = {}
        self._decoded_by: Rows | None = None

    def draw(self) -> None:
        t = self._context.t
        ui.add_head_html(f'<link rel="stylesheet" href="{login.STATIC_PATH}/messages.css">')
        narrow = "message-wide"
        columns = [
            {"name": "time", "label": t("messages.time"), "field": "time", "align": "left"},
            {"name": "p", "label": t("messages.partition"), "field": "p", "headerClasses": narrow},
            {"name": "o", "label": t("messages.offset"), "field": "o", "headerClasses": narrow},
            {"name": "key", "label": t("messages.key"), "field": "key", "align": "left"},
            {"name": "value", "label": t("messages.value"), "field": "value", "align": "left"},
            {"name": "size", "label": t("messages.size"), "field": "size", "headerClasses": narrow},
        ]
        self._table = ui.table(
            columns=columns, rows=[], row_key="id", pagination={"rowsPerPage": PAGE_ROWS},
            selection="multiple" if self._can_select else None,
        )  # fmt: skip
        self._table.add_slot("body", _BODY)
        self._table.props(
            'flat bordered dense hide-selected-banner :rows-per-page-options="[25, 50, 100, 500]" data-testid="messages"'
        ).classes("w-full")
        self._table.props["no-data-label"] = t("messages.not_yet")
        self._table.on("open", self._toggle)
        self._table.on("copy", self._copy)

    def show(self, rows: Sequence[Row], decoded_by: Rows, *, empty: str) -> None:
        self._rows, self._decoded_by = rows, decoded_by
        here = {(row.partition, row.offset) for row in rows}
        for place in [place for place in self._open if place not in here]:
            del self._open[place]
            self._loaded.pop(place, None)
        self._table.props["no-data-label"] = empty
        self._update()

    def forget(self) -> None:
        """For another search: what was open is another message now, or none, and was perhaps read otherwise."""
        self._open.clear()
        self._loaded.clear()
        self._table.selected.clear()

    @property
    def selected(self) -> list[Place]:
        return [_place(str(row["id"])) for row in self._table.selected]

    @property
    def element(self) -> ui.table:
        return self._table

    def _update(self) -> None:
        self._table.rows = [self._line(row) for row in self._rows]

    def _line(self, row: Row) -> dict[str, Any]:
        place = (row.partition, row.offset)
        seconds, ms = divmod(max(0, row.timestamp_ms), 1000)
        when = time.localtime(seconds)
        return {
            "id": f"{row.partition}-{row.offset}",
            "p": row.partition,
            "o": row.offset,
            "date": time.strftime("%Y-%m-%d", when),
            "time": f"{time.strftime('%H:%M:%S', when)}.{ms:03}"
            if row.timestamp_ms >= 0
            else figures.UNKNOWN,
            "key": row.key.text,
            "key_none": _none(row.key) if not row.control else "",
            "value": row.value.text,
            "value_none": _none(row.value) if not row.control else "",
            "badge": row.control
            or (row.value.kind if row.value.kind not in ("json", "text", "null", "empty") else ""),
            "headers": row.headers,
            "size": figures.size(row.value.size_bytes if row.value.size_bytes >= 0 else None),
            "may_select": self._can_select,
            "selectable": self._can_select and not row.control,
            "open": place in self._open,
            "detail": self._open.get(place),
            "loading": self._context.t("messages.loading"),
        }

    async def _toggle(self, event: GenericEventArguments) -> None:
        place = _place(_first(event.args))
        if place in self._open:
            del self._open[place]
            self._loaded.pop(place, None)
            self._update()
            return
        while len(self._open) >= MAX_OPEN:
            gone = next(iter(self._open))
            del self._open[gone]
            self._loaded.pop(gone, None)
        self._open[place] = None
        self._update()
        with layout.complaints(self._context):
            try:
                found = await self._load(place)
            except Exception:
                self._open.pop(place, None)
                self._update()
                raise
            if place in self._open and self._decoded_by is not None:
                rows = self._decoded_by
                self._loaded[place] = found
                self._open[place] = await self._context.cluster.call(lambda _: self._sheet(found, rows))
                self._update()

    def _sheet(self, found: details.Detail, rows: Rows) -> dict[str, Any]:
        """What the template shows. In a thread: it may ask the registry."""
        t, record, batch = self._context.t, found.record, found.batch
        facts = [
            [t("messages.partition"), str(record.partition)],
            [t("messages.offset"), f"{record.offset:,}"],
            [t("messages.fact_time_append" if record.is_append_time else "messages.fact_time"), _moment(record.timestamp_ms)],
            [
                t("messages.fact_batch"),
                t("messages.fact_batch_of", first=f"{batch.base_offset:,}", last=f"{batch.last_offset:,}",
                  count=figures.count(batch.records_count), size=figures.size(batch.size_bytes)),
            ],
            [t("messages.fact_codec"), batch.codec],
            [t("messages.fact_leader_epoch"), str(batch.leader_epoch)],
        ]  # fmt: skip
        if batch.producer_id >= 0:
            said = t(
                "messages.fact_producer_of",
                id=batch.producer_id,
                epoch=batch.producer_epoch,
                sequence=batch.base_sequence,
            )
            facts.append([t("messages.fact_producer"), said])
        if batch.is_transactional:
            facts.append([t("messages.fact_transaction"), batch.control or t("messages.yes")])
        parts = [] if batch.control else [
            self._part("key", details.key_part(found, rows), found),
            self._part("value", details.value_part(found, rows), found),
        ]  # fmt: skip
        return {
            "problem": "",
            "parts": parts,
            "headers": [list(pair) for pair in details.header_parts(found, rows)],
            "headers_label": t("messages.headers"),
            "facts": facts,
            "copy": t("messages.copy_message"),
        }

    def _part(self, name: str, part: details.Part, found: details.Detail) -> dict[str, Any]:
        t = self._context.t
        about = [figures.size(part.size_bytes)] if part.size_bytes >= 0 else []
        if part.schema:
            about.append(f"{t('messages.fact_schema')} {part.schema}")
        record = found.record
        where = {"topic": self._topic, "partition": record.partition, "offset": record.offset, "part": name}
        return {
            "name": name,
            "label": t(f"messages.{name}"),
            "kind": part.kind,
            "about": " · ".join(about),
            "text": part.text,
            "problem": part.problem,
            "cut": t("messages.cut", size=figures.size(part.size_bytes)) if part.is_cut else "",
            "copy": t(f"messages.copy_{name}"),
            "href": layout.link(self._context, PART, **where) if part.size_bytes > 0 else "",
            "download": t("common.download"),
        }

    async def _copy(self, event: GenericEventArguments) -> None:
        said = event.args
        while isinstance(said, list) and len(said) == 1:
            said = said[0]
        place, name = _place(str(said[0])), str(said[1])
        found, rows = self._loaded.get(place), self._decoded_by
        if found is None or rows is None:
            return
        with layout.complaints(self._context):
            text = await self._context.cluster.call(
                lambda _: details.copied_text(found, rows, self._topic, name)
            )
            if len(text) > details.MAX_COPIED_CHARACTERS:
                layout.complain(self._context, self._context.t("messages.too_large_to_copy"))
                return
            ui.clipboard.write(text)
            layout.tell(self._context.t("common.copied"))


def _none(cell: Cell) -> str:
    return cell.kind if cell.kind in ("null", "empty") else ""


def _moment(timestamp_ms: int) -> str:
    if timestamp_ms < 0:
        return figures.UNKNOWN
    return f"{figures.moment(timestamp_ms)}.{timestamp_ms % 1000:03} · {timestamp_ms}"


def _first(args: Any) -> str:
    while isinstance(args, list):
        args = args[0]
    return str(args)


def _place(row_id: str) -> Place:
    partition, _, offset = row_id.partition("-")
    return int(partition), int(offset)
