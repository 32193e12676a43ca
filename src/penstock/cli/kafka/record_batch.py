"""Taking records from a consumer of librdkafka by the many, without waiting for the many."""

from typing import Any

MAX_RECORDS = 500


def poll_batch(consumer: Any, wait_s: float, wanted: int = MAX_RECORDS) -> list[Any]:
    """Waits for the first one only. Errors are among the records: look at `error()`."""
    first = consumer.poll(wait_s)
    if first is None:
        return []
    more = min(wanted, MAX_RECORDS) - 1
    return [first, *(consumer.consume(more, 0) if more > 0 else ())]
