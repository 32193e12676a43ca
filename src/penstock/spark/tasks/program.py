"""What runs in a task's process: the body, called again when it fails, until it ends or is to stop."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from penstock.client.patience import Backoff
from penstock.spark.tasks.control import Control, Place, Refused
from penstock.spark.tasks.failures import Hopeless
from penstock.spark.tasks.states import Phase

log = logging.getLogger("penstock.spark.tasks")

Body = Callable[[Control], None]
WELL_AFTER_S: Final = 60.0  # a body that worked as long as this begins with the first pause again
RETRIES: Final = Backoff(0.5, factor=2, max_s=30, jitter=0.2)


class Program(NamedTuple):
    """Pickled by the driver and sent to each task."""

    body: Body
    address: tuple[str, int]
    secret: str
    job: str
    tasks: int
    retries: Backoff = RETRIES
    well_after_s: float = WELL_AFTER_S

    def run(self, task: int, *, attempt: int, owns_process: bool) -> None:
        place = Place(self.address, self.secret, self.job, task, self.tasks, attempt, owns_process)
        try:
            control = Control(place)
        except Refused as error:
            log.info("task %d of %s: %s", task, self.job, error)
            return
        try:
            self._call(control)
        except BaseException as error:
            control.error(error)
            control.close(Phase.LOST)
            raise
        control.close(Phase.ENDED)

    def _call(self, control: Control) -> None:
        failures = 0
        while not control.is_stopping:
            began_s = time.monotonic()
            try:
                self.body(control)
                return
            except Hopeless as error:
                control.error(error, is_fatal=True)
                return
            except Exception as error:
                if control.is_stopping:
                    control.error(error)
                    return
                failures = 1 if time.monotonic() - began_s > self.well_after_s else failures + 1
                control.error(error)
                control.enter(Phase.RETRYING)
                control.pause_for(self.retries.delay_s(failures, random.random))
