"""Committed offsets over bare connections: requests as scripts for a `swarm`, and waiting for the coordinators."""

import time
from collections.abc import Iterable, Sequence
from typing import Final

from bench.group_members import check
from bench.swarm import Ask, Pause, Script, Swarm, ask, swarm
from penstock.coordination.placement import partition_for
from penstock.model.errors import ErrorCode
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)

# The last versions that name topics by name; librdkafka sends these.
COMMIT_VERSION, FETCH_VERSION, FIND_VERSION = 9, 9, 4
OFFSETS_PARTITIONS = 50  # offsets.topic.num.partitions
NO_ONES_GENERATION: Final = -1
RETRY_INTERVAL_S = 0.005
NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


def commit_ask(
    group_id: str,
    topic: str,
    partition_count: int,
    *,
    offset: int,
    member_id: str = "",
    generation_id: int = NO_ONES_GENERATION,
) -> Ask:
    partitions = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
        for index in range(partition_count)
    ]
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions)],
    )
    return ask(request, OffsetCommitResponse, COMMIT_VERSION)


def check_commit(answered: OffsetCommitResponse) -> None:
    for topic in answered.topics:
        for partition in topic.partitions:
            check(partition.error_code, "OffsetCommit")


def groups_in_every_partition(prefix: str) -> list[str]:
    """A group id for each partition of __consumer_offsets."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < OFFSETS_PARTITIONS:
        group_id = f"{prefix}-{number}"
        found.setdefault(partition_for(group_id, OFFSETS_PARTITIONS), group_id)
        number += 1
    return list(found.values())


def last_groups_in_every_partition(group_ids: Iterable[str]) -> list[str]:
    """Of groups that committed in this order, those whose records are the last to be read."""
    return list({partition_for(group_id, OFFSETS_PARTITIONS): group_id for group_id in group_ids}.values())


def fetch_ask(group_ids: Sequence[str]) -> Ask:
    """All that these groups have committed."""
    groups = [OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in group_ids]
    return ask(OffsetFetchRequest(groups=groups), OffsetFetchResponse, FETCH_VERSION)


def committed(group: OffsetFetchResponseGroup) -> list[int]:
    return [partition.committed_offset for topic in group.topics for partition in topic.partitions]


def wait_for_coordinators(connected: Swarm) -> None:
    """Has __consumer_offsets created, if need be, and waits until each of its partitions can be asked."""
    connected.run([(connected.connections[0], _until_all_answer(groups_in_every_partition("probe")))])


def _until_all_answer(group_ids: Sequence[str]) -> Script:
    find = ask(
        FindCoordinatorRequest(coordinator_keys=group_ids, key_type=0), FindCoordinatorResponse, FIND_VERSION
    )
    fetch = fetch_ask(group_ids)
    deadline = time.monotonic() + 30
    while True:
        found: FindCoordinatorResponse = yield find
        codes = {each.error_code for each in found.coordinators}
        if codes == {ErrorCode.NONE}:
            fetched: OffsetFetchResponse = yield fetch
            codes = {group.error_code for group in fetched.groups}
        if codes == {ErrorCode.NONE}:
            return
        if not codes <= {ErrorCode.NONE, *NOT_YET} or time.monotonic() > deadline:
            check(max(codes), "FindCoordinator or OffsetFetch")
        yield Pause(RETRY_INTERVAL_S)


def wait_until_loaded(bootstrap: str, offsets: dict[str, list[int]], *, timeout_s: float) -> float:
    """Connects as soon as that is possible, and asks until these groups have these offsets.

    Returns time.monotonic() of the answer that had them all.
    """
    deadline = time.monotonic() + timeout_s
    loaded: list[float] = []

    def ask_until_loaded() -> Script:
        left = list(offsets)
        while left and time.monotonic() < deadline:
            answered: OffsetFetchResponse = yield fetch_ask(left)
            for group in answered.groups:
                if group.error_code not in NOT_YET:
                    check(group.error_code, "OffsetFetch")
                    if committed(group) != offsets[group.group_id]:
                        raise ValueError(f"{group.group_id} has committed {committed(group)}")
                    left.remove(group.group_id)
            if left:
                yield Pause(RETRY_INTERVAL_S)
        if not left:
            loaded.append(time.monotonic())

    while not loaded:
        try:
            with swarm(bootstrap, 1) as connected:
                connected.run([(connected.connections[0], ask_until_loaded())])
        except OSError:
            time.sleep(RETRY_INTERVAL_S)
        if not loaded and time.monotonic() > deadline:
            raise TimeoutError(f"{len(offsets)} groups were not loaded within {timeout_s:g} s")
    return loaded[0]
