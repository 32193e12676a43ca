"""Work of a connector that comes round: a thread which does each thing at its interval."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

log = logging.getLogger("penstock.mirror")

AGAIN_S: Final = 5.0
STOP_S: Final = 10.0


class Schedule:
    """What fails is logged, and done again a little later."""

    def __init__(self, name: str) -> None:
        self._works: list[tuple[float, Callable[[], object]]] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"penstock-mirror-{name}", daemon=True)

    def every(self, seconds: float, work: Callable[[], object]) -> None:
        if seconds > 0:
            self._works.append((seconds, work))

    def start(self) -> None:
        if self._works:
            self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(STOP_S)

    def _run(self) -> None:
        due = [time.monotonic() + seconds for seconds, _ in self._works]
        while not self._stopped.wait(max(0.0, min(due) - time.monotonic())):
            for number, (seconds, work) in enumerate(self._works):
                if time.monotonic() < due[number]:
                    continue
                pause_s = seconds
                try:
                    work()
                except Exception as error:
                    log.warning("%s: %s", self._thread.name, error)
                    pause_s = min(seconds, AGAIN_S)
                due[number] = time.monotonic() + pause_s
