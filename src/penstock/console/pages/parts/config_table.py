"""Configs with what they mean, where they come from and their default, to be edited one by one."""

from __future__ import annotations

import html
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from nicegui import ui

from penstock.admin import Cluster
from penstock.client.error_names import refused
from penstock.client.errors import UserError
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts.dialogs import answered
from penstock.console.pages.parts.grid import Col, button, grid

DEFAULT_SOURCE: Final = 5
KINDS: Final = {
    1: "boolean",
    2: "string",
    3: "int",
    4: "short",
    5: "long",
    6: "double",
    7: "list",
    8: "class",
    9: "password",
}
SHOWN_CHARACTERS: Final = 200
HELP_CHARACTERS: Final = 240
"""In the table; the dialog has all of it."""
_TAG: Final = re.compile(r"<[^<>]{1,200}>")


class Config(NamedTuple):
    name: str
    value: str | None
    source: int
    kind: str
    help: str
    default: str | None
    """What holds when it is not set here."""
    is_sensitive: bool
    is_read_only: bool

    def is_set_here(self, here: int) -> bool:
        return self.source == here


def configs_of(admin: Cluster, kind: int, name: str, *, here: int, broker: int | None = None) -> list[Config]:
    """With the brokers' own documentation. `here` is the source that this resource's own values have. Blocks."""
    from penstock.client.cluster_client import ClusterClient
    from penstock.wire.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
        DescribeConfigsResponse,
    )

    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)

    def ask(client: ClusterClient) -> DescribeConfigsResponse:
        if broker is None:
            return client.ask(request, DescribeConfigsResponse)
        return client.ask_node(client.node(broker), request, DescribeConfigsResponse)

    answer = admin.ask(ask)
    found = []
    for described in answer.results:
        if described.error_code:
            raise refused(described.error_code, described.error_message)
        for entry in described.configs:
            others = [one.value for one in entry.synonyms if one.source != here]
            found.append(
                Config(
                    entry.name,
                    entry.value,
                    entry.config_source,
                    KINDS.get(entry.config_type, ""),
                    _plain(entry.documentation or ""),
                    entry.value if entry.config_source != here else (others[0] if others else None),
                    entry.is_sensitive,
                    entry.read_only,
                )
            )
    return sorted(found)


Change = Callable[[str, str | None], Awaitable[None]]


class ConfigTable:
    """`change` gets a name and its new value; None: the default."""

    def __init__(
        self, context: PageContext, configs: Sequence[Config], *, here: int, change: Change | None
    ) -> None:
        self._context = context
        self._configs = {one.name: one for one in configs}
        self._here = here
        self._change = change
        self._search = ""
        self._only_set = False

    def draw(self) -> None:
        t = self._context.t
        with ui.row().classes("w-full items-center gap-3"):
            ui.input(
                placeholder=t("config.search"), on_change=lambda event: self._searched(event.value)
            ).props(
                f'dense outlined clearable debounce=150 aria-label="{t("config.search")}" data-testid="config-search"'
            ).classes("grow max-w-md")
            ui.switch(t("config.only_set"), on_change=lambda event: self._filtered(bool(event.value))).props(
                'dense data-testid="config-only-set"'
            )
        columns = [
            Col("name", t("common.name"), "mono"),
            Col("value", t("common.value"), "mono", is_sortable=False),
            Col("source", t("config.source"), "chip"),
            Col("help", t("config.help"), is_sortable=False, is_wide=True),
        ]
        if self._change is not None:
            columns.insert(3, Col("edit", "", "buttons", is_sortable=False))
        self._table = grid(
            self._context,
            columns,
            self._rows(),
            key="name",
            testid="configs",
            on_act=self._edit,
            rows_per_page=0,
        )
        self._table.props("wrap-cells hide-pagination")

    def _rows(self) -> list[dict[str, object]]:
        t, search = self._context.t, self._search.lower()
        pencil = [button("edit", "edit", t("common.edit"), "edit-config")]
        return [
            {
                "name": one.name,
                "value": _shown(self._context, one),
                "source": t("config.set_here" if one.is_set_here(self._here) else _source(one.source)),
                "source_color": "primary" if one.is_set_here(self._here) else "grey",
                "help": one.help if len(one.help) <= HELP_CHARACTERS else one.help[:HELP_CHARACTERS] + "…",
                "edit": [] if one.is_read_only else pencil,
            }
            for one in self._configs.values()
            if (not search or search in one.name.lower() or search in one.help.lower())
            and (not self._only_set or one.source != DEFAULT_SOURCE)
        ]

    def _searched(self, text: object) -> None:
        self._search = str(text or "")
        self._table.rows = self._rows()

    def _filtered(self, only_set: bool) -> None:
        self._only_set = only_set
        self._table.rows = self._rows()

    def update(self, configs: Sequence[Config]) -> None:
        self._configs = {one.name: one for one in configs}
        self._table.rows = self._rows()

    async def _edit(self, _: str, name: str) -> None:
        one, t = self._configs.get(name), self._context.t
        if one is None or self._change is None:
            return
        with (
            ui.dialog().props('data-testid="edit-config-dialog"') as dialog,
            ui.card().classes("w-full max-w-lg gap-3"),
        ):
            ui.label(one.name).classes("console-title console-mono")
            if one.help:
                ui.label(one.help).classes("console-soft")
            with ui.row().classes("gap-4 text-sm"):
                ui.label(t("config.kind", kind=one.kind or "?")).classes("console-soft")
                shown = (
                    t("config.hidden")
                    if one.is_sensitive
                    else (one.default if one.default is not None else "–")
                )
                ui.label(t("config.default", value=shown)).classes("console-soft break-all").props(
                    'data-testid="config-default"'
                )
            field: ui.select | ui.input
            if one.kind == "boolean":
                field = ui.select(["true", "false"], value=one.value, label=t("common.value"))
            else:
                field = ui.input(t("common.value"), value="" if one.is_sensitive else one.value or "")
                if one.is_sensitive:
                    field.props("type=password autocomplete=new-password")
            field.props('outlined dense autofocus data-testid="config-value"').classes("w-full console-mono")

            async def done(value: str | None) -> None:
                with layout.complaints(self._context):
                    if value is not None and value == "" and one.kind not in ("list", "string", "class"):
                        raise UserError(t("config.needs_value"))
                    assert self._change is not None
                    await self._change(one.name, value)
                    dialog.close()
                    layout.tell(t("config.changed", name=one.name))

            async def save() -> None:
                await done(str(field.value if field.value is not None else ""))

            with ui.row().classes("w-full justify-end gap-2"):
                if one.is_set_here(self._here):
                    ui.button(t("config.reset"), on_click=lambda: done(None)).props(
                        'flat no-caps data-testid="config-reset"'
                    )
                    ui.space()
                ui.button(t("common.cancel"), on_click=dialog.close).props("flat no-caps")
                ui.button(t("common.save"), on_click=save).props(
                    'unelevated no-caps data-testid="config-save"'
                )
            if isinstance(field, ui.input):
                field.on("keydown.enter", save)
        await answered(dialog)


def _plain(text: str) -> str:
    """Apache Kafka's documentation has HTML in it."""
    return html.unescape(_TAG.sub("", text))


def _shown(context: PageContext, one: Config) -> str:
    if one.is_sensitive:
        return context.t("config.hidden")
    if one.value is None:
        return "–"
    return one.value if len(one.value) <= SHOWN_CHARACTERS else one.value[:SHOWN_CHARACTERS] + "…"


def _source(source: int) -> str:
    return {DEFAULT_SOURCE: "config.of_default", 1: "config.of_topic", 2: "config.of_broker", 3: "config.of_brokers",
            4: "config.of_file"}.get(source, "config.of_default")  # fmt: skip
