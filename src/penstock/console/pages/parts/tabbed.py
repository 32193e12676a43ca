"""Parts of a page behind tabs; the strip scrolls where a phone is too narrow for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from nicegui import ui


class Tab(NamedTuple):
    name: str
    label: str
    draw: Callable[[], None]


def tabbed(tabs: Sequence[Tab], *, shown: str, on_turn: Callable[[str], None]) -> ui.tabs:
    """`on_turn` hears the name, so that what is drawn again shows the same one. Setting `value` of what is returned turns it."""
    strip = ui.tabs(value=shown, on_change=lambda event: on_turn(str(event.value)))  # type: ignore[arg-type]
    strip.props("dense no-caps align=left inline-label outside-arrows mobile-arrows").classes("w-full")
    with strip:
        for each in tabs:
            ui.tab(each.name, label=each.label).props(f'data-testid="tab-{each.name}"')
    with ui.tab_panels(strip, value=shown).classes("w-full bg-transparent"):
        for each in tabs:
            with ui.tab_panel(each.name).classes("px-0 gap-3"):
                each.draw()
    return strip
