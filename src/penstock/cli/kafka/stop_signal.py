"""SIGINT and SIGTERM as a question that a loop asks, so that it can end in order.

Python's KeyboardInterrupt will not do beside librdkafka: raised in one of its callbacks, it is lost in a SystemError.
"""

import signal
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SIGNAL_EXIT_CODE = 128


class StopSignal:
    """From its making on; a second signal changes nothing."""

    def __init__(self) -> None:
        self._number: int | None = None
        for number in SIGNALS:
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._number is None:
            self._number = number

    def is_given(self) -> bool:
        return self._number is not None

    @property
    def exit_code(self) -> int:
        return 0 if self._number is None else SIGNAL_EXIT_CODE + self._number
