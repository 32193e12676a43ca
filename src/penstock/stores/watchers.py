"""Who watches what in a tree: the same for every store."""

import logging
from collections.abc import Callable

from penstock.metadata.tree import EventKind, TreeEvent, Watcher, check_path, is_at_or_below

_log = logging.getLogger("penstock.stores")


class Watchers:
    def __init__(self) -> None:
        self._entries: list[tuple[str, Watcher]] = []

    def add(self, path: str, watcher: Watcher) -> Callable[[], None]:
        check_path(path)
        entry = (path, watcher)
        self._entries.append(entry)

        def stop() -> None:
            if entry in self._entries:
                self._entries.remove(entry)

        return stop

    @property
    def paths(self) -> list[str]:
        """Each watched path once."""
        return list(dict.fromkeys(path for path, _ in self._entries))

    def tell(self, event: TreeEvent) -> None:
        for path, watcher in tuple(self._entries):
            if is_at_or_below(event.path, root=path):
                _call(path, watcher, event)

    def tell_all(self, kind: EventKind) -> None:
        """One event for each watcher, at the path that it watches."""
        for path, watcher in tuple(self._entries):
            _call(path, watcher, TreeEvent(kind, path))

    def clear(self) -> None:
        self._entries.clear()


def _call(path: str, watcher: Watcher, event: TreeEvent) -> None:
    try:
        watcher(event)
    except Exception:
        # The change is made; a watcher's mistake must not reach the writer or the other watchers.
        _log.exception("a watcher of %s failed at %s", path, event.path)
