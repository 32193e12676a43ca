"""Calls of librdkafka that may be made again: an error says itself whether that can help."""

import logging
import time
from collections.abc import Callable

from confluent_kafka import KafkaException


def patiently(step: Callable[[], object], what: str, *, patience_s: float, log: logging.Logger) -> None:
    """Makes a call again while its error says that it may help; the last error when patience ends."""
    deadline_s = time.monotonic() + patience_s
    while True:
        try:
            step()
            return
        except KafkaException as error:
            cause = error.args[0]
            if not cause.retriable() or time.monotonic() > deadline_s:
                raise
            log.info("%s takes longer: %s", what, cause.str())
