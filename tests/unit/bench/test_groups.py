"""The bench's bare clients of groups, tried on a broker of ours."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.clients.commit_offsets import commit_for, prepare
from bench.clients.fill_offsets import check_each, commit_each, group_name
from bench.clients.join_groups import join_all
from bench.clients.rebalance_group import come_back, rebalance
from bench.group_members import Group, Member, UnexpectedAnswer, check, check_stable
from bench.log_servers import create_topics
from bench.offsets import (
    OFFSETS_PARTITIONS,
    groups_in_every_partition,
    last_groups_in_every_partition,
    wait_for_coordinators,
    wait_until_loaded,
)
from bench.swarm import Pause, Script, ask, swarm
from bench.workloads.groups import OPTIONS
from penstock.coordination.placement import partition_for
from penstock.model.errors import ErrorCode
from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.codec import decode
from penstock.wire.framing import read_header
from penstock.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockBroker]:
    with PenstockBroker(tmp_path_factory.mktemp("broker"), options=OPTIONS) as started:
        yield started


def test_a_frame_is_what_the_broker_reads() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    asked = ask(request, HeartbeatResponse, 4)
    header = read_header(memoryview(asked.frame)[4:])
    assert (header.api_key, header.api_version, header.client_id) == (request.API_KEY, 4, "bench")
    assert decode(HeartbeatRequest, 4, asked.frame, 4 + header.body_offset)[0] == request
    assert int.from_bytes(asked.frame[:4], "big") == len(asked.frame) - 4


def test_a_group_is_whole_when_all_are_in_one_generation() -> None:
    group = Group("g", 2)
    for member_id, generation_id in (("a", 1), ("a", 1), ("b", 2)):
        group.synced(member_id, generation_id)
        assert group.whole_at is None
    group.synced("a", 2)
    assert group.whole_at is not None


def test_an_error_is_called_by_its_name() -> None:
    with pytest.raises(UnexpectedAnswer, match="JoinGroup was answered with INVALID_GROUP_ID"):
        check(ErrorCode.INVALID_GROUP_ID, "JoinGroup")


def test_the_probes_reach_every_partition() -> None:
    partitions = {partition_for(name, OFFSETS_PARTITIONS) for name in groups_in_every_partition("probe")}
    assert partitions == set(range(OFFSETS_PARTITIONS))


def test_the_groups_waited_for_are_the_last_of_their_partitions() -> None:
    names = [group_name(number) for number in range(1000)]
    last = last_groups_in_every_partition(names)
    assert len(last) == OFFSETS_PARTITIONS
    for name in last:
        later = names[names.index(name) + 1 :]
        partition = partition_for(name, OFFSETS_PARTITIONS)
        assert all(partition_for(each, OFFSETS_PARTITIONS) != partition for each in later)


def test_groups_that_join_at_once_become_whole(broker: PenstockBroker) -> None:
    with swarm(broker.bootstrap, 40) as connected:
        wait_for_coordinators(connected)
        for number in range(2):  # everybody has left in between
            groups = [Group(f"joined-{number}-{each}", 4) for each in range(10)]
            seconds, request_count = join_all(connected, groups)
            assert seconds > 0
            assert request_count >= 40 * len(("JoinGroup", "JoinGroup with an id", "SyncGroup"))


def test_a_group_rebalances_without_the_one_who_leaves(broker: PenstockBroker) -> None:
    with swarm(broker.bootstrap, 8) as connected:
        wait_for_coordinators(connected)
        group = Group("rebalanced", 8)
        members = [Member(connection, group) for connection in connected.connections]
        connected.run([(member.connection, member.join_and_stay()) for member in members])
        for leaver in members[:3]:
            assert rebalance(connected, group, members, leaver) > 0
            connected.run([(connected.connections[0], check_stable([group]))])
            come_back(connected, group, members, leaver)
            connected.run([(connected.connections[0], check_stable([group]))])


def test_commits_are_counted(broker: PenstockBroker) -> None:
    create_topics(broker, {"committed": 3})
    with swarm(broker.bootstrap, 4) as connected:
        committers = prepare(connected, "committed", 3)
        assert len(commit_for(committers, warm_up_s=0.05, seconds=0.2)) > 4
        connected.run([(each.connection, each.commit_and_leave()) for each in committers])


def test_filled_groups_are_found_after_a_restart(tmp_path: Path) -> None:
    numbers = range(200)
    with PenstockBroker(tmp_path) as first, swarm(first.bootstrap, 1) as connected:
        create_topics(first, {"committed": 2})
        wait_for_coordinators(connected)
        connected.run([(connected.connections[0], commit_each(numbers, "committed", 2))])
    with PenstockBroker(tmp_path, wait_until_ready=False) as second:
        expected = {group_name(number): [number] * 2 for number in numbers}
        assert wait_until_loaded(second.bootstrap, expected, timeout_s=20) > second.process.started_at
        with swarm(second.bootstrap, 1) as connected:
            connected.run([(connected.connections[0], check_each(numbers, 2))])


def test_scripts_pause_side_by_side(broker: PenstockBroker) -> None:
    ended: list[str] = []

    def wait(seconds: float, name: str) -> Script:
        yield Pause(seconds)
        ended.append(name)

    with swarm(broker.bootstrap, 2) as connected:
        connected.run(zip(connected.connections, (wait(0.1, "late"), wait(0.01, "early")), strict=True))
    assert ended == ["early", "late"]
