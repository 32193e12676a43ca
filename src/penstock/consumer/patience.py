"""Calls of librdkafka that may be made again."""

import logging
import time
from collections.abc import Callable

from confluent_kafka import KafkaError, KafkaException


def patiently(
    step: Callable[[], object],
    what: str,
    *,
    patience_s: float,
    log: logging.Logger,
    may_pass: Callable[[KafkaError], bool] = KafkaError.retriable,
    pause_s: float = 0.0,
) -> None:
    """Makes a call again while its error may pass, as it says itself by default; the last error when patience ends."""
    deadline_s = time.monotonic() + patience_s
    while True:
        try:
            step()
            return
        except KafkaException as error:
            cause = error.args[0]
            if not may_pass(cause) or time.monotonic() > deadline_s:
                raise
            log.info("%s takes longer: %s", what, cause.str())
            time.sleep(pause_s)
