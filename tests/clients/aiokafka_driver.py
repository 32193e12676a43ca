"""aiokafka: asyncio. One event loop in a thread of its own runs all of its clients, so that tests stay plain functions."""

import asyncio
import threading
from collections.abc import Awaitable, Coroutine, Sequence
from typing import Any, TypeVar

import aiokafka
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError, NoOffsetForPartitionError

from tests.clients.driver import WAIT_S, NoStartingOffset, Received, Record, Refused

T = TypeVar("T")


class LoopThread:
    """Runs coroutines to their end, one event loop for all, each with a deadline."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="aiokafka", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float = WAIT_S + 10) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)
        self._loop.close()


class AiokafkaDriver:
    name = "aiokafka"

    def __init__(self) -> None:
        self._loop_thread: LoopThread | None = None

    @property
    def loop(self) -> LoopThread:
        if self._loop_thread is None:
            self._loop_thread = LoopThread()
        return self._loop_thread

    def can_send(self, record: Record) -> bool:
        return record.key is not None or record.value is not None

    def producer(
        self,
        bootstrap: str,
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
        max_request_bytes: int = 1_000_000,
        batch_bytes: int = 16_384,
    ) -> "AiokafkaProducer":
        async def start() -> aiokafka.AIOKafkaProducer:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if codec == "none" else codec,
                acks="all" if acks == "all" else int(acks),
                enable_idempotence=idempotent,
                max_request_size=max_request_bytes,
                max_batch_size=batch_bytes,
                linger_ms=1,
            )
            await producer.start()
            return producer

        return AiokafkaProducer(self.loop, self.loop.run(start()))

    def consumer(
        self,
        bootstrap: str,
        *,
        partitions: Sequence[tuple[str, int]] = (),
        group: str | None = None,
        topics: Sequence[str] = (),
        pattern: str | None = None,
        offset_reset: str = "earliest",
    ) -> "AiokafkaConsumer":
        async def start() -> aiokafka.AIOKafkaConsumer:
            consumer = aiokafka.AIOKafkaConsumer(
                bootstrap_servers=bootstrap,
                group_id=group,
                auto_offset_reset=offset_reset,
                enable_auto_commit=False,
                fetch_max_wait_ms=100,
                session_timeout_ms=10_000,
                heartbeat_interval_ms=300,
                metadata_max_age_ms=500,
            )
            if partitions:
                consumer.assign([TopicPartition(topic, index) for topic, index in partitions])
            elif pattern:
                consumer.subscribe(pattern=pattern)
            else:
                consumer.subscribe(list(topics))
            await consumer.start()
            return consumer

        return AiokafkaConsumer(self.loop, self.loop.run(start()))

    def close(self) -> None:
        if self._loop_thread is not None:
            self._loop_thread.close()


class AiokafkaProducer:
    def __init__(self, loop: LoopThread, producer: aiokafka.AIOKafkaProducer) -> None:
        self._loop = loop
        self._producer = producer
        self._waiting: list[tuple[str, Record]] = []

    def send(self, topic: str, record: Record) -> None:
        # Handed over in one go by flush: a crossing between threads for each record is slow.
        self._waiting.append((topic, record))

    def flush(self, timeout_s: float = WAIT_S) -> list[int]:
        waiting, self._waiting = self._waiting, []

        async def send_all() -> list[int]:
            answers: list[Awaitable[Any]] = []
            for topic, record in waiting:
                answers.append(
                    await self._producer.send(
                        topic,
                        value=record.value,
                        key=record.key,
                        headers=list(record.headers),
                        partition=record.partition,
                        timestamp_ms=record.timestamp_ms,
                    )
                )
            results = await asyncio.wait_for(asyncio.gather(*answers, return_exceptions=True), timeout_s)
            for result in results:
                if isinstance(result, BaseException):
                    raise result
            return [-1 if result is None else result.offset for result in results]

        try:
            return self._loop.run(send_all(), timeout_s + 10)
        except KafkaError as error:
            raise Refused(error.errno) from None

    def close(self) -> None:
        self._loop.run(self._producer.stop())


class AiokafkaConsumer:
    def __init__(self, loop: LoopThread, consumer: aiokafka.AIOKafkaConsumer) -> None:
        self._loop = loop
        self._consumer = consumer

    def poll(self, timeout_s: float) -> list[Received]:
        try:
            by_partition = self._loop.run(self._consumer.getmany(timeout_ms=int(timeout_s * 1000)))
        except NoOffsetForPartitionError:
            raise NoStartingOffset from None
        return [
            Received(
                Record(each.value, each.key, tuple(each.headers), each.timestamp, each.partition),
                each.topic,
                each.offset,
                each.timestamp_type,
            )
            for records in by_partition.values()
            for each in records
        ]

    def assignment(self) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self._consumer.assignment()}

    def commit(self) -> None:
        self._loop.run(self._consumer.commit())

    def seek(self, topic: str, partition: int, offset: int) -> None:
        async def seek() -> None:
            self._consumer.seek(TopicPartition(topic, partition), offset)

        self._loop.run(seek())

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int:
        where = TopicPartition(topic, partition)
        found = self._loop.run(self._consumer.offsets_for_times({where: timestamp_ms}))[where]
        return -1 if found is None else int(found.offset)

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        where = TopicPartition(topic, partition)
        low = self._loop.run(self._consumer.beginning_offsets([where]))[where]
        return low, self._loop.run(self._consumer.end_offsets([where]))[where]

    def close(self) -> None:
        self._loop.run(self._consumer.stop())
