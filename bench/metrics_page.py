"""What a page of metrics costs a broker's loop: `python -m bench.metrics_page [partitions] [groups]` (1000 and 1000).

One process: a broker on real files with one topic, and groups that have committed offsets of ten partitions each. Shown are the
slices of the loop's time in which the copy is taken, how long the whole page takes beside an idle loop, and how late that loop
was meanwhile.
"""

import asyncio
import contextlib
import gc
import sys
import tempfile
import time
from collections.abc import Awaitable, Generator
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from bench.runner import CACHE_DIRECTORY
from bench.small_request import open_broker
from penstock.broker.metrics.facts import Metrics
from penstock.broker.serving import BrokerServer
from penstock.coordination.form import Outcome, RequestContext, Ticket
from penstock.groups.shard import GroupShard
from penstock.model.api_keys import ApiKey
from penstock.model.errors import ApiError
from penstock.runtime.loop_lag import waits_for_cores
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

TOPIC = "orders"
PARTITIONS_OF_A_GROUP = 10
PAGES = 20
TICK_SECONDS = 0.001
SWITCH_SECONDS = 0.0005
GC_THRESHOLDS = (100_000, 20, 100)
"""As in the broker's process."""


class Slices:
    """Awaits something, and notes how long each step of it held the loop."""

    def __init__(self, work: Awaitable[Any]) -> None:
        self._work = work
        self.seconds: list[float] = []

    def __await__(self) -> Generator[Any, Any, Any]:
        steps: Any = self._work.__await__()
        while True:
            began = time.thread_time()
            try:
                awaited = steps.send(None)
            except StopIteration as end:
                return end.value
            finally:
                self.seconds.append(time.thread_time() - began)
            yield awaited


def committed(
    request: OffsetCommitRequest, context: RequestContext, shard: GroupShard, ticket: Ticket, now_ms: int
) -> Outcome:
    return shard.commit_offsets(request, context, ticket, now_ms)


async def fill(broker: BrokerServer, partitions: int, groups: int) -> None:
    with contextlib.suppress(ApiError):  # it takes a while
        await broker.node.topics.auto_create(TOPIC, allowed=True)
    while broker.node.image.topic(TOPIC) is None:
        await asyncio.sleep(0.1)
    await broker.node.groups.ensure_topic()
    context = RequestContext(9, "bench", "/127.0.0.1")
    for number in range(groups):
        first = number * PARTITIONS_OF_A_GROUP % partitions
        indexes = [(first + index) % partitions for index in range(min(PARTITIONS_OF_A_GROUP, partitions))]
        commit = OffsetCommitRequest(
            group_id=f"group-{number}",
            topics=[
                OffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=[OffsetCommitRequestPartition(partition_index=index) for index in indexes],
                )
            ],
        )
        await broker.node.groups.answer(
            f"group-{number}",
            partial(committed, commit, context),
        )
    for api_key in (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.OFFSET_COMMIT):
        broker.node.request_counts.of(api_key).note(9)


async def lateness(stopped: asyncio.Event) -> list[float]:
    """Without the time in which this thread waited for a core: other programs have theirs."""
    waited = waits_for_cores()
    late = []
    while not stopped.is_set():
        due, before = time.perf_counter() + TICK_SECONDS, waited()
        await asyncio.sleep(TICK_SECONDS)
        late.append(max(time.perf_counter() - due - (waited() - before), 0.0))
    return sorted(late)


async def main(partitions: int, groups: int) -> None:
    sys.setswitchinterval(SWITCH_SECONDS)
    Path(CACHE_DIRECTORY).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE_DIRECTORY) as directory:
        broker = await open_broker(directory, {"num.partitions": str(partitions)})
        await fill(broker, partitions, groups)
        metrics = Metrics(broker.node, [], lambda: 0.0)
        await metrics.page()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        copies = []
        for _ in range(PAGES):
            slices = Slices(metrics.gather())
            await slices
            copies.append(slices.seconds)
            await asyncio.sleep(0.01)
        stopped = asyncio.Event()
        late = asyncio.ensure_future(lateness(stopped))
        took = []
        size = 0
        for _ in range(PAGES):
            began = time.perf_counter()
            size = len((await metrics.page()).body)
            took.append(time.perf_counter() - began)
        stopped.set()
        whole = sorted(sum(each) for each in copies)
        longest = sorted(max(each) for each in copies)
        print(f"{partitions} partitions, {groups} groups: a page of {size / 1e6:.1f} MB")
        print(
            f"the loop's time, all slices      {whole[PAGES // 2] * 1e3:6.1f} ms (longest {whole[-1] * 1e3:.1f})"
        )
        print(
            f"the longest slice                {longest[PAGES // 2] * 1e3:6.1f} ms (longest {longest[-1] * 1e3:.1f})"
        )
        print(f"a page, from asking to having    {sorted(took)[PAGES // 2] * 1e3:6.1f} ms")
        lateness_ms = [each * 1e3 for each in await late]
        p50, p99 = (lateness_ms[int(len(lateness_ms) * share)] for share in (0.5, 0.99))
        print(f"the loop was late, p50, p99, max {p50:6.1f} {p99:.1f} {lateness_ms[-1]:.1f} ms")
        metrics.stop()
        await broker.stop(lambda: None)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    uvloop.run(main(*(numbers + [1000, 1000][len(numbers) :])))
