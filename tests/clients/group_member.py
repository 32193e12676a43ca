"""One member of a group as a program of its own, so that it can be killed or stopped: says in JSON what it is given and reads.

    python group_member.py LIBRARY BOOTSTRAP GROUP TOPIC PROTOCOL [INSTANCE]

LIBRARY is confluent, aiokafka or kafka_python; PROTOCOL is classic or consumer. The lines are those of Apache's
VerifiableConsumer as far as the tests look: {"name": "partitions_assigned", "partitions": […]} with all that the member
has now, {"name": "records_consumed", "values": […]}. Offsets are committed after each read.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

SESSION_TIMEOUT_MS = 6000
HEARTBEAT_INTERVAL_MS = 500


def say(name: str, **what: Any) -> None:
    print(json.dumps({"name": name, **what}), flush=True)


def say_assigned(partitions: Any) -> None:
    """At every poll, changed or not: who listens may have missed what a member lost and got back in between."""
    say("partitions_assigned", partitions=sorted(place.partition for place in partitions))


def with_confluent(bootstrap: str, group: str, topic: str, protocol: str, instance: str | None) -> None:
    from confluent_kafka import Consumer

    options: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "log_level": 0,
    }
    if protocol == "classic":
        options |= {
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
            "partition.assignment.strategy": "range",
        }
    if instance is not None:
        options["group.instance.id"] = instance
    consumer = Consumer(options)
    consumer.subscribe([topic])
    while True:
        messages = [each for each in consumer.consume(100, 0.1) if each.error() is None]
        say_assigned(consumer.assignment())
        if messages:
            say("records_consumed", values=[(each.value() or b"").decode() for each in messages])
            try:
                consumer.commit(asynchronous=False)
            except Exception as error:
                say("commit_failed", error=str(error))


async def with_aiokafka(bootstrap: str, group: str, topic: str) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor

    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    await consumer.start()
    while True:
        batches = await consumer.getmany(timeout_ms=100)
        say_assigned(consumer.assignment())
        values = [each.value.decode() for messages in batches.values() for each in messages]
        if values:
            say("records_consumed", values=values)
            try:
                await consumer.commit()
            except Exception as error:
                say("commit_failed", error=str(error))


def with_kafka_python(bootstrap: str, group: str, topic: str) -> None:
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tests.clients.kafka_python_driver import keep_joining

    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    while True:
        batches = consumer.poll(timeout_ms=100)
        keep_joining(consumer)
        say_assigned(consumer.assignment())
        values = [each.value.decode() for messages in batches.values() for each in messages]
        if values:
            say("records_consumed", values=values)
            try:
                consumer.commit()
            except Exception as error:
                say("commit_failed", error=str(error))


def main() -> None:
    library, bootstrap, group, topic, protocol, *rest = sys.argv[1:]
    if library == "confluent":
        with_confluent(bootstrap, group, topic, protocol, rest[0] if rest else None)
    elif library == "aiokafka":
        asyncio.run(with_aiokafka(bootstrap, group, topic))
    else:
        with_kafka_python(bootstrap, group, topic)


if __name__ == "__main__":
    main()
