"""Dialogs that ask before something is done. They belong to the page, not to a part of it that may be drawn anew meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nicegui import ui

from penstock.console.context import PageContext
from penstock.console.pages.parts.dialogs import answered


@contextmanager
def asking(testid: str, *, wide: bool = False) -> Iterator[ui.dialog]:
    """A card on a dialog; `answered` after the block."""
    width = "max-w-2xl" if wide else "max-w-md"
    with (
        ui.context.client.content,
        ui.dialog().props(f'data-testid="{testid}"') as dialog,
        ui.card().classes(f"w-full {width} gap-3"),
    ):
        yield dialog


async def confirmed(
    context: PageContext,
    question: str,
    detail: str = "",
    *,
    button: str,
    typed: str = "",
    is_harmful: bool = True,
) -> bool:
    """Whether the person says yes. With `typed` only who types that name can."""
    with asking("confirm") as dialog:
        ui.label(question).classes("text-lg break-words w-full")
        if detail:
            ui.label(detail).classes("break-words w-full opacity-80")
        field = None
        if typed:
            field = ui.input(context.t("common.confirm_name", name=typed)).classes("w-full")
            field.props('autofocus outlined dense autocomplete=off data-testid="confirm-name"')
        with ui.row().classes("w-full justify-end gap-2"):
            ui.button(context.t("common.cancel"), on_click=lambda: dialog.submit(False)).props("flat no-caps")
            yes = ui.button(button, on_click=lambda: dialog.submit(True))
            yes.props(
                f'no-caps unelevated color={"negative" if is_harmful else "primary"} data-testid="confirm-yes"'
            )
        if field is not None:
            yes.bind_enabled_from(field, "value", lambda value: value == typed)
            field.on("keydown.enter", lambda: dialog.submit(True) if field.value == typed else None)
        else:
            yes.props("autofocus")
    return bool(await answered(dialog))
