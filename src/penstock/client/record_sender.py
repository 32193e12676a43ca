"""Giving records to a producer of librdkafka whose buffer may be full."""

from typing import Any

ROOM_WAIT_S = 0.1


def send(producer: Any, topic: str, **record: Any) -> None:
    """Waits for room. KafkaException where the record cannot be taken at all."""
    while True:
        try:
            producer.produce(topic, **record)
            return
        except BufferError:
            producer.poll(ROOM_WAIT_S)
