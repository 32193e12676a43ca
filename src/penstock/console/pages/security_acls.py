"""Access rules: listed, made for producers, consumers or anything else, removed."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from penstock.admin.facets.acls import Acl
from penstock.client.errors import UserError
from penstock.console.access.actions import Action
from penstock.console.actions import security as actions
from penstock.console.actions.security import AclWish
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts.asking_first import asking, confirmed
from penstock.console.pages.parts.dialogs import answered
from penstock.console.pages.parts.grid import Col, button, grid
from penstock.console.pages.parts.section import Section
from penstock.model.acl import ALL_OPERATIONS, OPERATIONS, TYPES, Operation, ResourceType, shown

MAX_ROWS: Final = 2000
PRODUCER, CONSUMER, OWN = "producer", "consumer", "own"
TYPE_NAMES: Final = tuple(shown(each) for each in TYPES)
PRODUCES: Final = ("Write", "Describe", "Create")
CONSUMES: Final = ("Read", "Describe")


class Acls:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._search = context.query.get("search", "").lower()
        self._rules: dict[str, Acl] = {}

    def draw(self) -> None:
        context, t = self._context, self._context.t
        with ui.row().classes("w-full items-center gap-3"):
            field = ui.input(
                placeholder=t("security.search_rules"), value=self._search, on_change=self._searched
            )
            field.props(f'dense outlined clearable debounce=250 data-testid="search-rules" {layout.SEARCH}')
            field.classes("grow max-w-md").props["aria-label"] = t("security.search_rules")
            ui.space()
            if context.may_somewhere(Action.EDIT_SECURITY):
                ui.button(t("security.add_rules"), icon="add", on_click=self._ask).props(
                    'unelevated no-caps data-testid="add-rules"'
                )
        self._section = Section(
            context, lambda: context.cluster.call(lambda admin: admin.acls.list()), self._show
        )

    def _searched(self, event: ValueChangeEventArguments[Any]) -> None:
        self._search = str(event.value or "").lower()
        self._section.draw_again()

    def _show(self, found: list[Acl]) -> None:
        t = self._context.t
        self._rules = {str(number): each for number, each in enumerate(found)}
        matching = {key: each for key, each in self._rules.items() if self._search in " ".join(each).lower()}
        told = t("security.rules_count", shown=len(matching), total=len(found))
        ui.label(told).classes("console-soft").props('data-testid="rules-count"')
        acts = [button("remove", "delete", t("security.remove_rule"), "remove-rule")]
        rows = [self._row(key, each, acts) for key, each in list(matching.items())[:MAX_ROWS]]
        columns = [
            Col("principal", t("security.principal"), is_wide=True),
            Col("permission", t("security.permission"), "chip"),
            Col("operation", t("security.operation")),
            Col("type", t("security.resource")),
            Col("name", t("common.name"), is_wide=True),
            Col("host", t("security.host")),
            Col("acts", "", "buttons"),
        ]
        grid(
            self._context,
            columns,
            rows,
            key="id",
            testid="rules",
            empty=t("security.no_rules"),
            on_act=self._remove,
        )

    def _row(self, key: str, acl: Acl, acts: list[dict[str, str]]) -> dict[str, Any]:
        t = self._context.t
        name = (
            t("security.begins_with", name=acl.resource_name)
            if acl.pattern == "Prefixed"
            else acl.resource_name
        )
        return {
            "id": key,
            "principal": acl.principal,
            "permission": t(f"security.{acl.permission.lower()}"),
            "permission_color": "positive" if acl.permission == "Allow" else "negative",
            "operation": acl.operation,
            "type": acl.resource_type,
            "name": name if name != "*" else t("security.all_names"),
            "host": acl.host if acl.host != "*" else t("security.all_hosts"),
            "acts": acts if self._context.may(Action.EDIT_SECURITY, acl.principal) else [],
        }

    async def _remove(self, _: str, key: str) -> None:
        t, acl = self._context.t, self._rules.get(key)
        if acl is None:
            return
        detail = f"{acl.principal}: {acl.permission} {acl.operation} · {acl.resource_type} {acl.resource_name} ({acl.pattern})"
        if not await confirmed(
            self._context, t("security.ask_remove_rule"), detail, button=t("security.remove_rule")
        ):
            return
        with layout.complaints(self._context):
            await actions.remove_acls(self._context, [acl])
            layout.tell(t("security.rule_gone"))
        await self._section.refresh()

    # ------------------------------------------------------------------ new rules

    async def _ask(self) -> None:
        t = self._context.t
        with asking("rules-dialog", wide=True) as dialog:
            ui.label(t("security.add_rules")).classes("text-lg")
            form = _RulesForm(self._context)
            with ui.row().classes("w-full justify-end gap-2"):
                ui.button(t("common.cancel"), on_click=lambda: dialog.submit(False)).props("flat no-caps")
                ui.button(t("common.create"), on_click=lambda: dialog.submit(True)).props(
                    'unelevated no-caps data-testid="save-rules"'
                )
        is_wanted = await answered(dialog)
        with layout.complaints(self._context):
            if is_wanted:
                made = 0
                for wish in form.wishes():
                    made += len(await actions.add_acls(self._context, wish))
                layout.tell(t("security.rules_made", count=made))
        await self._section.refresh()


class _RulesForm:
    """What rules are wanted: those of a producer, of a consumer, or of one's own."""

    def __init__(self, context: PageContext) -> None:
        self._context, t = context, context.t
        self._for = ui.toggle(
            {each: t(f"security.for_{each}") for each in (PRODUCER, CONSUMER, OWN)}, value=CONSUMER
        )
        self._for.props('no-caps data-testid="rules-for"')
        with ui.grid().classes("w-full gap-3 grid-cols-1 md:grid-cols-2"):
            self._principal = _field(t("security.principal"), "principal", "User:")
            self._host = _field(t("security.host_or_all"), "host", "*")
            self._topic = _field(t("security.topic"), "topic")
            self._group = _field(t("security.group"), "group")
            self._transactional = _field(t("security.transactional"), "transactional")
            self._type = ui.select(
                list(TYPE_NAMES), value="Topic", label=t("security.resource"), on_change=self._typed
            )
            self._name = _field(t("security.name_or_all"), "name")
            self._operations = ui.select(
                operations_of("Topic"), label=t("security.operations"), multiple=True, value=[]
            )
            for each, testid in ((self._type, "type"), (self._operations, "operations")):
                each.props(f'outlined dense options-dense use-chips data-testid="{testid}"').classes("w-full")
        with ui.row().classes("gap-4"):
            self._prefix = ui.checkbox(t("security.prefix")).props('data-testid="prefix"')
            self._deny = ui.checkbox(t("security.deny_instead")).props('data-testid="deny"')
        for field, purposes in (
            (self._topic, (PRODUCER, CONSUMER)), (self._group, (CONSUMER,)), (self._transactional, (PRODUCER,)),
            (self._type, (OWN,)), (self._name, (OWN,)), (self._operations, (OWN,)), (self._deny, (OWN,)),
        ):  # fmt: skip
            field.bind_visibility_from(self._for, "value", partial(_is_one_of, purposes))

    def _typed(self) -> None:
        self._operations.set_options(operations_of(str(self._type.value)), value=[])

    def wishes(self) -> list[AclWish]:
        purpose, is_prefix = str(self._for.value), bool(self._prefix.value)
        principal, host = _text(self._principal), _text(self._host) or "*"
        topic, group, transactional = _text(self._topic), _text(self._group), _text(self._transactional)

        def wish(operations: tuple[str, ...], kind: str, name: str, *, deny: bool = False) -> AclWish:
            return AclWish(principal, operations, kind, name, is_prefix, host, deny)

        found: list[AclWish] = []
        if purpose == OWN:
            kind = str(self._type.value)
            operations = tuple(map(str, self._operations.value or ()))
            found.append(wish(operations, kind, _text(self._name), deny=bool(self._deny.value)))
        elif purpose == PRODUCER:
            found.append(wish(PRODUCES, "Topic", topic))
            if transactional:
                found.append(wish(("Write", "Describe"), "TransactionalId", transactional))
        else:
            found.append(wish(CONSUMES, "Topic", topic))
            if group:
                found.append(wish(("Read",), "Group", group))
        if any(not each.name and each.resource_type != "Cluster" for each in found):
            raise UserError(self._context.t("security.name_missing"))
        return found


def _is_one_of(purposes: tuple[str, ...], value: str) -> bool:
    return value in purposes


def _field(label: str, testid: str, value: str = "") -> ui.input:
    found = ui.input(label, value=value).props(f'outlined dense autocomplete=off data-testid="rule-{testid}"')
    return found.classes("w-full")


def _text(field: ui.input) -> str:
    return str(field.value or "").strip()


def operations_of(kind: str) -> list[str]:
    resource = next((each for each in TYPES if shown(each) == kind), ResourceType.TOPIC)
    return [shown(each) for each in (*OPERATIONS[resource], Operation.ALL) if each in ALL_OPERATIONS]
