"""Figures side by side, with what they are below them; and pairs of a name and a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nicegui import ui


@dataclass(frozen=True)
class Tile:
    key: str
    label: str
    href: str = ""


class Tiles:
    """`set` changes the figures; a tile without one is not shown."""

    def __init__(self, tiles: Sequence[Tile]) -> None:
        self._values: dict[str, ui.label] = {}
        self._boxes: dict[str, ui.element] = {}
        with ui.element("div").classes("console-tiles w-full"):
            for tile in tiles:
                box = ui.link(target=tile.href) if tile.href else ui.element("div")
                with box.classes("console-tile") as box:
                    self._values[tile.key] = (
                        ui.label().classes("console-figure").props(f'data-testid="tile-{tile.key}"')
                    )
                    ui.label(tile.label).classes("console-soft text-xs")
                box.set_visibility(False)
                self._boxes[tile.key] = box

    def set(self, values: Mapping[str, str | None]) -> None:
        for key, value in values.items():
            self._boxes[key].set_visibility(value is not None)
            if value is not None and self._values[key].text != value:
                self._values[key].set_text(value)
