"""The task's side of its driver."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from penstock.connect.connectors.side_process import SideProcess
from penstock.connect.connectors.spark.driver import NAME
from penstock.connect.connectors.spark.spark_settings import CONF, OPTION, with_prefix
from penstock.connect.errors import ConnectError

LONG_S: Final = 24 * 3600.0
"""A write or a read of Spark's may take what it takes; the task is stopped all the same."""


class Driving:
    """Use from one thread. `close` it."""

    def __init__(
        self,
        name: str,
        given: Mapping[str, str],
        values: Mapping[str, Any],
        *,
        is_over: Callable[[], bool],
        log: logging.Logger,
    ) -> None:
        self._is_over, self._log = is_over, log
        self._process = SideProcess(NAME)
        self._process.send(
            "open",
            {
                **values,
                "name": f"penstock-connect-{name}",
                "master": values["spark.master"],
                "options": with_prefix(given, OPTION),
                "conf": with_prefix(given, CONF),
            },
        )
        if self.answer(values["spark.start.timeout.ms"] / 1000) is None:
            raise ConnectError("the task is to stop before Spark has started")

    def ask(self, *message: Any) -> Any:
        """None when the task is to stop. ConnectError."""
        self._process.send(*message)
        return self.answer(LONG_S)

    def tell(self, *message: Any) -> None:
        self._process.send(*message)

    def answer(self, timeout_s: float) -> Any:
        return self._checked(self._process.wait(self._is_over, timeout_s))

    def look(self, timeout_s: float) -> Any:
        """What has come within the time, if anything. ConnectError."""
        return self._checked(self._process.receive(timeout_s))

    def close(self) -> None:
        self._process.close()

    def _checked(self, answer: Any) -> Any:
        if answer is not None and answer[0] == "failed":
            self._log.warning("Spark: %s", answer[2])
            raise ConnectError(f"Spark: {answer[1]}")
        return answer
