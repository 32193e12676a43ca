"""Dead letters: topics of them, the causes in one, samples of each, and replaying them."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any, Final

from nicegui import ui

from penstock.client.errors import UserError
from penstock.connect.tasks.dead_letters import TOPIC as TOPIC_OF_CONNECTOR
from penstock.console.access.actions import Action
from penstock.console.context import PageContext
from penstock.console.dead_letters import MAX_LOOKED_AT, Cause, Looked, Sample, look, mask_of, topics_of
from penstock.console.pages import dead_letters_replay, layout
from penstock.console.pages.parts import figures
from penstock.console.pages.parts.asking_first import asking
from penstock.console.pages.parts.grid import Col, button, fill, grid
from penstock.console.pages.parts.section import Section, banner
from penstock.console.pages.screens import Screen
from penstock.console.upstream.asking import asked
from penstock.console.upstream.servers import servers

PATH: Final = "/{cluster}/dead-letters"
TOPIC: Final = "/{cluster}/dead-letters/{topic}"
REFRESH_S: Final = 5.0
PREVIEW_CHARS: Final = 120
Row = tuple[str, int | None, float | None, int | None, tuple[str, ...]]


class _Topics:
    """Those whose names say so, and those that connectors are told to write to."""

    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._of_connectors: tuple[str, ...] | None = None

    def draw(self) -> None:
        context, t = self._context, self._context.t
        with layout.heading(t("dead.title"), t("dead.subtitle")):
            pass
        with ui.row().classes("w-full items-center gap-2"):
            field = ui.input(t("dead.other_topic")).props(
                f'dense outlined autocomplete=off data-testid="other-topic" {layout.SEARCH}'
            )
            field.classes("grow max-w-md")

            def go() -> None:
                if field.value:
                    ui.navigate.to(layout.link(context, TOPIC, topic=str(field.value).strip()))

            field.on("keydown.enter", go)
            ui.button(t("dead.open"), on_click=go).props('outline no-caps data-testid="open-topic"')
        Section(context, self._look, self._show, every_s=REFRESH_S)
        columns = [
            Col("name", t("dead.topic"), "link", is_wide=True),
            Col("records", t("dead.letters"), "number", is_sortable=False),
            Col("rate", t("dead.rate"), "number", is_sortable=False),
            Col("size", t("dead.size"), "number", is_sortable=False),
            Col("readers", t("dead.readers"), is_wide=True),
        ]
        self._table = grid(context, columns, [], key="name", testid="dead-topics")

    async def _look(self) -> list[Row]:
        view = self._context.cluster.snapshot.latest
        if view is None:
            return []
        if self._of_connectors is None:
            self._of_connectors = await asked(partial(_topics_of_connectors, self._context))
        names = [
            name
            for name in topics_of(view.topics, self._of_connectors)
            if self._context.may(Action.VIEW, name)
        ]
        found = []
        for name in names:
            topic = view.topics[name]
            found.append(
                (name, topic.records, topic.per_second, topic.size_bytes, view.readers.get(name, ()))
            )
        return found

    def _show(self, found: list[Row]) -> None:
        t = self._context.t
        rows = [
            {
                "name": name,
                "name_href": layout.link(self._context, TOPIC, topic=name),
                "records": figures.count(records),
                "rate": figures.rate(rate),
                "size": figures.size(size),
                "readers": ", ".join(readers[:5]),
            }
            for name, records, rate, size, readers in found
        ]
        fill(self._table, rows, empty=t("dead.none"))


class _Letters:
    _section: Section[Looked]

    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._topic = context.path["topic"]
        self._stopped = threading.Event()
        self._cause: str | None = None
        self._looked: Looked | None = None
        self._button: ui.button | None = None

    def draw(self) -> None:
        context, t = self._context, self._context.t
        context.require(Action.READ_MESSAGES, self._topic)
        with layout.heading(self._topic, t("dead.subtitle_one")):
            if context.may(Action.PRODUCE, self._topic):
                self._button = ui.button(t("dead.replay"), icon="replay", on_click=self._replay)
                self._button.props('unelevated no-caps data-testid="replay"').set_enabled(False)
            ui.button(icon="refresh", on_click=lambda: self._section.refresh()).props(
                f'flat round aria-label="{t("common.refresh")}" data-testid="refresh"'
            )
        ui.context.client.on_delete(self._stopped.set)
        self._section = Section(context, self._look, self._show)

    async def _look(self) -> Looked:
        context, cluster = self._context, self._context.cluster
        context.require(Action.READ_MESSAGES, self._topic)
        rules, roles = context.console.settings.masking, context.visitor.roles
        registry = servers(cluster).registry.values if cluster.registry_url else None
        return await asked(
            partial(
                look, cluster.bootstrap, cluster.properties, self._topic, registry=registry, stopped=self._stopped,
                mask_of=lambda origin: mask_of(rules, roles, self._topic, origin),
            )
        )  # fmt: skip

    def _show(self, looked: Looked) -> None:
        context, t = self._context, self._context.t
        self._looked = looked
        if self._button is not None:
            self._button.set_enabled(bool(looked.causes))
        waiting = sum(each.waiting for each in looked.causes)
        told = t("dead.count", count=figures.count(looked.seen), waiting=figures.count(waiting))
        ui.label(told).classes("console-soft").props('data-testid="count"')
        if looked.is_cut:
            banner(context, t("dead.cut", most=figures.count(MAX_LOOKED_AT)), kind="warning")
        rows = [self._cause_row(each) for each in looked.causes]
        columns = [
            Col("cause", t("dead.cause"), is_wide=True),
            Col("count", t("dead.letters"), "number"),
            Col("waiting", t("dead.waiting"), "number"),
            Col("from", t("dead.from"), is_wide=True),
            Col("last", t("dead.last")),
            Col("message", t("dead.message"), is_wide=True),
            Col("acts", "", "buttons"),
        ]
        grid(context, columns, rows, key="id", testid="causes", empty=t("dead.empty"), on_act=self._choose)
        self._samples = ui.column().classes("w-full gap-2")
        known = [each.name for each in looked.causes]
        if known:
            self._draw_samples(self._cause if self._cause in known else known[0])

    def _cause_row(self, cause: Cause) -> dict[str, Any]:
        t = self._context.t
        return {
            "id": cause.name,
            "cause": cause.name or t("dead.no_cause"),
            "count": cause.letters,
            "waiting": cause.waiting,
            "from": ", ".join(cause.topics),
            "last": figures.moment(cause.last_ms),
            "message": cause.message[:PREVIEW_CHARS],
            "acts": [button("samples", "visibility", t("dead.samples"))],
        }

    def _choose(self, _: str, name: str) -> None:
        self._draw_samples(name)

    def _draw_samples(self, name: str) -> None:
        t = self._context.t
        cause = (
            next((each for each in self._looked.causes if each.name == name), None) if self._looked else None
        )
        if cause is None:
            return
        self._cause = name
        self._samples.clear()
        rows = [
            {
                "place": f"{each.partition}/{each.offset}",
                "origin": f"{each.why.topic} {each.why.partition}/{each.why.offset}"
                if each.why.topic
                else "",
                "by": each.why.by,
                "at": figures.moment(each.why.last_ms if each.why.last_ms is not None else each.at_ms),
                "attempts": each.why.attempts or "",
                "key": each.key[:PREVIEW_CHARS],
                "value": each.value[:PREVIEW_CHARS],
                "replayed": t("common.yes") if each.is_replayed else t("common.no"),
                "acts": [button("open", "open_in_full", t("dead.details"))],
            }
            for each in cause.samples
        ]
        columns = [
            Col("place", t("dead.place")),
            Col("origin", t("dead.origin"), is_wide=True),
            Col("by", t("dead.by")),
            Col("at", t("dead.last")),
            Col("attempts", t("dead.attempts"), "number"),
            Col("key", t("dead.key"), "mono", is_wide=True),
            Col("value", t("dead.value"), "mono", is_wide=True),
            Col("replayed", t("dead.replayed")),
            Col("acts", "", "buttons"),
        ]
        samples = {f"{each.partition}/{each.offset}": each for each in cause.samples}
        with self._samples:
            title = t("dead.newest_of", count=len(rows), cause=cause.name or t("dead.no_cause"))
            ui.label(title).classes("text-base font-medium break-all")
            grid(
                self._context, columns, rows, key="place", testid="samples",
                on_act=lambda _, place: self._open(samples[str(place)]),
            )  # fmt: skip

    def _open(self, sample: Sample) -> None:
        t, why = self._context.t, sample.why
        with asking("letter", wide=True) as dialog:
            ui.label(f"{self._topic} {sample.partition}/{sample.offset}").classes("text-lg break-all")
            if why.cause:
                ui.label(f"{why.cause}: {why.message}").classes("console-bad break-words w-full")
            for label, text in (
                ("dead.key", sample.key),
                ("dead.value", sample.value),
                ("dead.stack", why.stack),
            ):
                if text:
                    ui.label(t(label)).classes("console-soft text-sm")
                    box = ui.label(text).classes(
                        "font-mono text-xs whitespace-pre-wrap break-words overflow-auto w-full"
                    )
                    box.classes("max-h-60 console-card p-2")
            if sample.headers:
                ui.label(t("dead.headers")).classes("console-soft text-sm")
                for name, value in sample.headers:
                    ui.label(f"{name}: {value}").classes("font-mono text-xs break-all w-full")
            ui.button(t("common.close"), on_click=dialog.close).props("flat no-caps").classes("self-end")
        dialog.on("hide", dialog.delete)
        dialog.open()

    async def _replay(self) -> None:
        causes = [each.name for each in self._looked.causes if each.name] if self._looked else []
        await dead_letters_replay.Replaying(self._context, self._topic, causes).ask()
        await self._section.refresh()


def _topics_of_connectors(context: PageContext) -> tuple[str, ...]:
    """What connectors are told to write to; a worker that is away tells nothing, and is no reason to show less."""
    from penstock.client.errors import Refused, Unreachable

    found = set()
    for server in servers(context.cluster).connects:
        try:
            found |= {each.config.get(TOPIC_OF_CONNECTOR, "") for each in server.connectors()}
        except (UserError, Refused, Unreachable):
            continue
    return tuple(sorted(found - {""}))


async def build(context: PageContext) -> None:
    _Topics(context).draw()


async def build_one(context: PageContext) -> None:
    _Letters(context).draw()


SCREENS: Final = (
    Screen("dead-letters", PATH, "dead.title", "mark_email_unread", build),
    Screen("dead-letters-of", TOPIC, "dead.title", "mark_email_unread", build_one, in_menu=False),
)
