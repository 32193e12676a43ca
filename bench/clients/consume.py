"""librdkafka (confluent-kafka) reads a topic from its beginning, assigned or, with a group, subscribed.

From assign() or subscribe() to the last record.
"""

import time
import uuid

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from bench.clients.options import print_result, read_options

IDLE_TIMEOUT_S = 30
RECORDS_PER_CALL = 5_000


def main() -> None:
    options = read_options()
    topic, record_count = options["topic"], options["record_count"]
    consumer = Consumer(
        {
            "bootstrap.servers": options["bootstrap"],
            **options.get("client", {}),
            "group.id": options.get("group") or f"bench-{uuid.uuid4()}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            # When its queue is full librdkafka stops asking for a whole second. At 64 MB of queue and 300 MB/s that pause is
            # what would be measured, the more the faster the server is: 215 against 350 MB/s from one and the same broker.
            "fetch.queue.backoff.ms": 1,
        }
    )
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    began = time.perf_counter()
    if options.get("group"):
        consumer.subscribe([topic])
    else:
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in partitions])
    seen = 0
    while seen < record_count:
        messages = consumer.consume(min(RECORDS_PER_CALL, record_count - seen), timeout=IDLE_TIMEOUT_S)
        if not messages:
            raise SystemExit(f"no record for {IDLE_TIMEOUT_S} s after {seen} of {record_count}")
        for message in messages:
            if error := message.error():
                raise SystemExit(f"after {seen} records: {error}")
        seen += len(messages)
    seconds = time.perf_counter() - began
    consumer.close()
    print_result(seconds=seconds)


if __name__ == "__main__":
    main()
