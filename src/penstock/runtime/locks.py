"""A lock between threads that wait for a device while they hold it.

The event loop must not take it: it would wait as long as the disk does. `watch` lets a test see who takes it.
"""

from collections.abc import Callable
from threading import Lock
from typing import Final


class DeviceLock:
    __slots__ = ("_lock", "_name")

    watch: Callable[[str, str], None] | None = None
    """Told ("lock", its name) by whoever is about to take one."""

    def __init__(self, name: str) -> None:
        self._lock: Final = Lock()
        self._name: Final = name

    def __enter__(self) -> None:
        if DeviceLock.watch is not None:
            DeviceLock.watch("lock", self._name)
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
