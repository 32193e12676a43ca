"""Users of the cluster that log in by SCRAM."""

from __future__ import annotations

import secrets
from typing import Final

from nicegui import ui

from penstock.admin.users import DEFAULT_MECHANISM, UserCredential
from penstock.console.access.actions import Action
from penstock.console.actions import security as actions
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts.asking_first import asking, confirmed
from penstock.console.pages.parts.dialogs import answered
from penstock.console.pages.parts.grid import Col, button, grid
from penstock.console.pages.parts.section import Section

MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256")
GENERATED_BYTES: Final = 18


class Users:
    def __init__(self, context: PageContext) -> None:
        self._context = context

    def draw(self) -> None:
        context, t = self._context, self._context.t
        with ui.row().classes("w-full items-center gap-3"):
            ui.label(t("security.users_told")).classes("console-soft grow")
            if context.may_somewhere(Action.EDIT_SECURITY):
                ui.button(t("security.create_user"), icon="person_add", on_click=lambda: self._ask("")).props(
                    'unelevated no-caps data-testid="create-user"'
                )
        self._section = Section(
            context, lambda: context.cluster.call(lambda admin: admin.users.list()), self._show
        )

    def _show(self, found: list[UserCredential]) -> None:
        t, by_name = self._context.t, dict[str, list[UserCredential]]()
        for each in found:
            by_name.setdefault(each.name, []).append(each)
        acts = [
            button("password", "key", t("security.new_password")),
            button("who", "checklist", t("security.see_rules")),
            button("remove", "person_remove", t("security.remove_user")),
        ]
        rows = [
            {
                "name": name,
                "mechanisms": ", ".join(f"{one.mechanism} ({one.iterations:,})" for one in credentials),
                "acts": acts if self._context.may(Action.EDIT_SECURITY, f"User:{name}") else acts[1:2],
            }
            for name, credentials in by_name.items()
        ]
        columns = [
            Col("name", t("security.user")),
            Col("mechanisms", t("security.mechanisms"), is_wide=True),
            Col("acts", "", "buttons"),
        ]
        grid(
            self._context,
            columns,
            rows,
            key="name",
            testid="users",
            empty=t("security.no_users"),
            on_act=self._act,
        )

    async def _act(self, name: str, user: str) -> None:
        if name == "password":
            await self._ask(user)
        elif name == "remove":
            await self._remove(user)
        else:
            ui.navigate.to(
                layout.link(self._context, "/{cluster}/security", tab="acls", search=f"User:{user}")
            )

    async def _ask(self, user: str) -> None:
        t = self._context.t
        with asking("user-dialog") as dialog:
            ui.label(t("security.create_user") if not user else t("security.new_password")).classes("text-lg")
            name = ui.input(t("security.user"), value=user).props(
                'outlined dense autocomplete=off data-testid="user"'
            )
            name.classes("w-full")
            if user:
                name.props("readonly")
            password = ui.input(t("security.password"), password=True, password_toggle_button=True)
            password.props('outlined dense autocomplete=new-password data-testid="password"').classes(
                "w-full"
            )
            ui.button(
                t("security.generate"), icon="casino",
                on_click=lambda: password.set_value(secrets.token_urlsafe(GENERATED_BYTES)),
            ).props('flat dense no-caps data-testid="generate"').classes("self-start")  # fmt: skip
            mechanism = ui.select(list(MECHANISMS), value=DEFAULT_MECHANISM, label=t("security.mechanism"))
            mechanism.props("outlined dense options-dense").classes("w-full")
            with ui.row().classes("w-full justify-end gap-2"):
                ui.button(t("common.cancel"), on_click=lambda: dialog.submit(False)).props("flat no-caps")
                ui.button(t("common.save"), on_click=lambda: dialog.submit(True)).props(
                    'unelevated no-caps data-testid="save-user"'
                )
        if not await answered(dialog):
            return
        with layout.complaints(self._context):
            who = str(name.value or "").strip()
            await actions.set_password(
                self._context, who, str(password.value or ""), mechanism=str(mechanism.value)
            )
            layout.tell(t("security.user_set", user=who))
        await self._section.refresh()

    async def _remove(self, user: str) -> None:
        t = self._context.t
        question, detail = t("security.ask_remove_user", user=user), t("security.remove_user_means")
        if not await confirmed(self._context, question, detail, button=t("security.remove_user"), typed=user):
            return
        with layout.complaints(self._context):
            await actions.remove_user(self._context, user)
            layout.tell(t("security.user_gone", user=user))
        await self._section.refresh()
