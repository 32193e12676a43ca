"""Calls of librdkafka that are made again, and which of its errors are retriable.

It says so itself of transactions only; of other calls nobody does. Its positive codes are Kafka's. The negative ones are its
own, for what happens on this side of the connection.
"""

import logging
from collections.abc import Callable, Set
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

from penstock.client.patience import Patience, patiently
from penstock.model.errors import RETRIABLE

T = TypeVar("T")

NO_ANSWER: Final = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._TRANSPORT})
NOT_DELIVERED: Final = NO_ANSWER | {
    KafkaError._MSG_TIMED_OUT,
    KafkaError._QUEUE_FULL,
    KafkaError._TIMED_OUT_QUEUE,
}
"""A record that got no answer, or waited here for too long: it may be sent again."""
NOT_DELIVERED_NAMES: Final = frozenset(KafkaError(code).name() for code in NOT_DELIVERED)
UNKNOWN_TOPIC: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
)
"""A broker that has just started may not know it yet."""
RETRIABLE_CODES: Final = RETRIABLE | NO_ANSWER | UNKNOWN_TOPIC | {KafkaError._WAIT_COORD}


def retriable_calls(
    call: Callable[[], T],
    what: str,
    *,
    timeout_s: float,
    log: logging.Logger,
    codes: Set[int] = frozenset(),
) -> T:
    """Made again while the error says that it is retriable, or has one of these codes; the last error when the time is over."""

    def is_retriable(error: Exception) -> bool:
        if not isinstance(error, KafkaException):
            return False
        cause = error.args[0]
        return bool(cause.retriable()) or cause.code() in codes

    def tell(error: Exception) -> None:
        log.info("%s takes longer: %s", what, error.args[0].str())

    return patiently(call, Patience(timeout_s), is_retriable=is_retriable, before_next=tell)
