"""Who may do something to a resource, and why."""

from __future__ import annotations

from nicegui import ui

from penstock.admin.facets.acls import Answer
from penstock.client.errors import UserError
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts.grid import Col, grid
from penstock.console.pages.security_acls import TYPE_NAMES, operations_of


class Who:
    def __init__(self, context: PageContext) -> None:
        self._context = context

    def draw(self) -> None:
        t = self._context.t
        ui.label(t("security.who_told")).classes("console-soft")
        with ui.row().classes("w-full items-center gap-3"):
            self._type = ui.select(
                list(TYPE_NAMES), value="Topic", label=t("security.resource"), on_change=self._typed
            )
            self._type.props('outlined dense options-dense data-testid="who-type"').classes("w-40")
            self._name = ui.input(t("common.name")).props(
                'outlined dense autocomplete=off data-testid="who-name"'
            )
            self._name.classes("grow max-w-xs").on("keydown.enter", self._ask)
            self._operation = ui.select(operations_of("Topic"), value="Read", label=t("security.operation"))
            self._operation.props('outlined dense options-dense data-testid="who-operation"').classes("w-40")
            self._principal = ui.input(t("security.also_principal"), placeholder="User:ana")
            self._principal.props('outlined dense autocomplete=off data-testid="who-principal"').classes(
                "w-48"
            )
            self._host = ui.input(t("security.host"), value="*").props(
                'outlined dense data-testid="who-host"'
            )
            self._host.classes("w-36")
            ui.button(t("security.ask"), icon="rule", on_click=self._ask).props(
                'unelevated no-caps data-testid="who-ask"'
            )
        self._answer = ui.column().classes("w-full gap-3").props("aria-live=polite")

    def _typed(self) -> None:
        operations = operations_of(str(self._type.value))
        self._operation.set_options(operations, value=operations[0])

    async def _ask(self) -> None:
        t = self._context.t
        with layout.complaints(self._context):
            kind, name = str(self._type.value), str(self._name.value or "").strip()
            if not name and kind != "Cluster":
                raise UserError(t("security.name_missing"))
            operation, host = str(self._operation.value), str(self._host.value or "*").strip()
            principal = str(self._principal.value or "").strip()
            also = [principal] if principal else []
            credentials = (
                await self._context.cluster.call(lambda admin: admin.users.list()) if not also else []
            )
            others = also or sorted({f"User:{each.name}" for each in credentials})
            found = await self._context.cluster.call(
                lambda admin: admin.acls.who(operation, resource_type=kind, name=name, host=host, also=others)
            )
            self._show({principal: found[principal]} if principal else found)

    def _show(self, found: dict[str, Answer]) -> None:
        t = self._context.t
        rows = [
            {
                "principal": principal,
                "may": t("common.yes") if answer.is_allowed else t("common.no"),
                "may_color": "positive" if answer.is_allowed else "negative",
                "why": answer.reason,
                "rule": _rule(answer),
            }
            for principal, answer in found.items()
        ]
        columns = [
            Col("principal", t("security.principal"), is_wide=True),
            Col("may", t("security.may"), "chip"),
            Col("why", t("security.why"), is_wide=True),
            Col("rule", t("security.rule"), is_wide=True),
        ]
        self._answer.clear()
        with self._answer:
            grid(self._context, columns, rows, key="principal", testid="who", empty=t("security.nobody"))


def _rule(answer: Answer) -> str:
    acl = answer.acl
    if acl is None:
        return ""
    name = f"{acl.resource_name}…" if acl.pattern == "Prefixed" else acl.resource_name
    return f"{acl.permission} {acl.principal} {acl.operation} · {acl.resource_type} {name} · {acl.host}"
