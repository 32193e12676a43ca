"""SIGINT and SIGTERM for tools that run librdkafka's clients."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SIGNAL_EXIT_CODE = 128


class StopSignal:
    """SIGINT and SIGTERM, from its making on, as a question that a loop asks so that it can end in order.

    Python's KeyboardInterrupt will not do beside librdkafka: raised in one of its callbacks, it is lost in a SystemError.
    """

    def __init__(self) -> None:
        self.count = 0
        self._number: int | None = None
        self._breaks = False
        for number in SIGNALS:
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self._number is None:
            self._number = number
        if self._breaks:
            raise KeyboardInterrupt

    def is_given(self) -> bool:
        return self._number is not None

    @contextmanager
    def breaking(self) -> Iterator[None]:
        """A signal raises KeyboardInterrupt in this block, so that it ends a wait for input. No client may be asked in it."""
        self._breaks = True
        try:
            if self._number is not None:
                raise KeyboardInterrupt
            yield
        finally:
            self._breaks = False

    @property
    def exit_code(self) -> int:
        """Of the first signal, as a shell tells it."""
        return 0 if self._number is None else SIGNAL_EXIT_CODE + self._number
