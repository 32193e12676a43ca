"""The views that pull queries were answered from so far."""

from __future__ import annotations

import threading
from pathlib import Path

from penstock.client.clients import Connection
from penstock.sql.engine.views import TableView
from penstock.streams.formats.registry import SchemaLookup
from penstock.streams.plan.sources import Source


class Views:
    """Of tables that were asked for, each made at the first question and kept until the table is dropped."""

    def __init__(self, directory: Path, connection: Connection, registry: SchemaLookup | None) -> None:
        self._directory = directory
        self._connection = connection
        self._registry = registry
        self._lock = threading.Lock()
        self._views: dict[str, TableView] = {}

    def of(self, source: Source) -> TableView:
        with self._lock:
            view = self._views.get(source.name)
            if view is not None and view.source == source:
                return view
            if view is not None:
                view.stop(delete=True)
            view = TableView(source, self._connection, self._directory, registry=self._registry)
            self._views[source.name] = view
            view.start()
            return view

    def ready(self, source: Source) -> TableView | None:
        """One that is there and can be asked; it waits for nothing."""
        view = self._views.get(source.name)
        return view if view is not None and view.source is source and view.is_ready() else None

    def forget(self, names: set[str]) -> None:
        """Those of tables that are not among these names any more."""
        with self._lock:
            gone = [name for name in self._views if name not in names]
            views = [self._views.pop(name) for name in gone]
        for view in views:
            view.stop(delete=True)

    def close(self) -> None:
        with self._lock:
            views, self._views = list(self._views.values()), {}
        for view in views:
            view.stop()
