"""Quotas of users, client ids and addresses."""

from __future__ import annotations

from typing import Final

from nicegui import ui

from penstock.admin.quotas import DEFAULT, QuotasOf
from penstock.client.errors import UserError
from penstock.console.access.actions import Action
from penstock.console.actions import security as actions
from penstock.console.actions.security import QuotaOwner
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts.asking_first import asking, confirmed
from penstock.console.pages.parts.dialogs import answered
from penstock.console.pages.parts.grid import Col, button, grid
from penstock.console.pages.parts.section import Section
from penstock.model.quotas import OF_CLIENTS, OF_IPS

BYTES: Final = ("producer_byte_rate", "consumer_byte_rate")
EVERYBODY: Final = "*"
"""What a person types for all without a quota of their own."""


class Quotas:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._owners: dict[str, QuotasOf] = {}

    def draw(self) -> None:
        context, t = self._context, self._context.t
        with ui.row().classes("w-full items-center gap-3"):
            ui.label(t("security.quotas_told")).classes("console-soft grow")
            if context.may_somewhere(Action.EDIT_SECURITY):
                ui.button(t("security.set_quota"), icon="add", on_click=lambda: self._ask(None)).props(
                    'unelevated no-caps data-testid="set-quota"'
                )
        self._section = Section(
            context, lambda: context.cluster.call(lambda admin: admin.quotas.list()), self._show
        )

    def _show(self, found: list[QuotasOf]) -> None:
        t = self._context.t
        self._owners = {str(_owner(each)): each for each in found}
        acts = [button("edit", "edit", t("common.edit"), "edit-quota"),
                button("remove", "delete", t("common.delete"), "remove-quota")]  # fmt: skip
        rows = [
            {
                "owner": key,
                **{
                    part: self._name(value)
                    for part, value in zip(("user", "client", "ip"), each[:3], strict=True)
                },
                "values": "\n".join(_told(name, value) for name, value in sorted(each.values.items())),
                "acts": acts if self._context.may(Action.EDIT_SECURITY, key) else [],
            }
            for key, each in self._owners.items()
        ]
        columns = [
            Col("user", t("security.user")),
            Col("client", t("security.client_id")),
            Col("ip", t("security.address")),
            Col("values", t("security.quotas"), "mono", is_wide=True),
            Col("acts", "", "buttons"),
        ]
        grid(
            self._context,
            columns,
            rows,
            key="owner",
            testid="quotas",
            empty=t("security.no_quotas"),
            on_act=self._act,
        )

    def _name(self, name: str | None) -> str:
        return "" if name is None else self._context.t("security.all_others") if name == DEFAULT else name

    async def _act(self, name: str, key: str) -> None:
        found = self._owners.get(key)
        if found is None:
            return
        if name == "edit":
            await self._ask(found)
        else:
            await self._remove(found)

    async def _ask(self, known: QuotasOf | None) -> None:
        t = self._context.t
        with asking("quota-dialog") as dialog:
            ui.label(t("security.set_quota")).classes("text-lg")
            ui.label(t("security.quota_help")).classes("console-soft text-sm")
            owner = _owner(known) if known else QuotaOwner()
            names = {}
            for part, label in (("user", "user"), ("client_id", "client_id"), ("ip", "address")):
                given = getattr(owner, part)
                value = "" if given is None else EVERYBODY if given == DEFAULT else given
                names[part] = ui.input(t(f"security.{label}"), value=value)
                names[part].props(f'outlined dense autocomplete=off data-testid="quota-{part}"').classes(
                    "w-full"
                )
                if known:
                    names[part].props("readonly")
            values = {}
            for name in (*OF_CLIENTS, *OF_IPS):
                if known and name not in (OF_IPS if known.ip is not None else OF_CLIENTS):
                    continue
                given = known.values.get(name) if known else None
                values[name] = ui.input(t(f"security.{name}"), value="" if given is None else f"{given:.12g}")
                values[name].props(f'outlined dense inputmode=decimal data-testid="{name}"').classes("w-full")
            with ui.row().classes("w-full justify-end gap-2"):
                ui.button(t("common.cancel"), on_click=lambda: dialog.submit(False)).props("flat no-caps")
                ui.button(t("common.save"), on_click=lambda: dialog.submit(True)).props(
                    'unelevated no-caps data-testid="save-quota"'
                )
        is_wanted = await answered(dialog)
        with layout.complaints(self._context):
            if is_wanted:
                texts = {part: str(field.value or "").strip() for part, field in names.items()}
                wanted = QuotaOwner(**{part: _given(text) for part, text in texts.items()})
                await self._set(
                    wanted, {name: str(field.value or "").strip() for name, field in values.items()}, known
                )
        await self._section.refresh()

    async def _set(self, owner: QuotaOwner, texts: dict[str, str], known: QuotasOf | None) -> None:
        t = self._context.t
        values = {name: _number(self._context, text) for name, text in texts.items() if text}
        gone = [name for name, text in texts.items() if not text and known and name in known.values]
        if not values and not gone:
            raise UserError(t("security.no_value"))
        if values:
            await actions.set_quotas(self._context, owner, values)
        if gone:
            await actions.remove_quotas(self._context, owner, gone)
        layout.tell(t("security.quota_set", owner=owner))

    async def _remove(self, found: QuotasOf) -> None:
        t, owner = self._context.t, _owner(found)
        if not await confirmed(
            self._context, t("security.ask_remove_quota", owner=owner), button=t("common.delete")
        ):
            return
        with layout.complaints(self._context):
            await actions.remove_quotas(self._context, owner)
            layout.tell(t("security.quota_gone", owner=owner))
        await self._section.refresh()


def _owner(quotas: QuotasOf) -> QuotaOwner:
    return QuotaOwner(*quotas[:3])


def _given(text: str) -> str | None:
    return None if not text else DEFAULT if text == EVERYBODY else text


def _told(name: str, value: float) -> str:
    if name in BYTES:
        for unit, size in (("GiB/s", 1 << 30), ("MiB/s", 1 << 20), ("KiB/s", 1 << 10)):
            if value >= size:
                return f"{name} = {value:.12g} ({value / size:.4g} {unit})"
    return f"{name} = {value:.12g}"


def _number(context: PageContext, text: str) -> float:
    try:
        value = float(text.replace("_", ""))
    except ValueError:
        value = -1.0
    if not 0 <= value < 2**63:
        raise UserError(context.t("security.bad_number", text=text))
    return value
