"""Dialogs that are made for one question, and are gone when it is answered."""

from __future__ import annotations

from typing import Any

from nicegui import ui


async def answered(dialog: ui.dialog) -> Any:
    """Opens it, waits, takes it away; what it was submitted with, None where it was only closed. The page may be left
    meanwhile."""
    dialog.open()
    try:
        return await dialog
    finally:
        take_away(dialog)


def take_away(dialog: ui.dialog) -> None:
    """Unless the page has gone, and the dialog with it."""
    slot = dialog.parent_slot
    if not dialog.is_deleted and slot is not None and dialog in slot.children:
        dialog.delete()
