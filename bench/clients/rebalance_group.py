"""One group of many members, as bare sockets: one leaves, the others rebalance, it comes back; again and again.

A rebalance is counted from the LeaveGroup until the last of the others has its new assignment. The others send their
next heartbeat as soon as that request is answered, so that the interval of heartbeats is no part of it.
"""

import time

from bench.clients.options import print_result, read_options
from bench.group_members import Group, Member, check_stable
from bench.measure import percentile
from bench.offsets import wait_for_coordinators
from bench.swarm import Swarm, swarm


def rebalance(connected: Swarm, group: Group, members: list[Member], leaver: Member) -> float:
    """Milliseconds. Afterwards the group is whole without the one who left."""
    others = [member for member in members if member is not leaver]
    group.expect(len(others))
    began = time.perf_counter()
    connected.run([(leaver.connection, leaver.leave())])
    connected.run([(member.connection, member.beat()) for member in others])
    if group.whole_at is None:
        raise SystemExit(f"only {len(group.synced_ids)} of {len(others)} members are in one generation")
    return (group.whole_at - began) * 1000


def come_back(connected: Swarm, group: Group, members: list[Member], leaver: Member) -> None:
    """With its id taken before, its JoinGroup is on its way when the others ask, so that few must ask twice."""
    group.expect(len(members))
    connected.run([(leaver.connection, leaver.take_id())])
    others = [member for member in members if member is not leaver]
    connected.run(
        [
            (leaver.connection, leaver.join_and_stay()),
            *((member.connection, member.stay()) for member in others),
        ]
    )


def main() -> None:
    options = read_options()
    member_count = options["member_count"]
    durations_ms, cpu_seconds = [], 0.0
    with swarm(options["bootstrap"], member_count) as connected:
        wait_for_coordinators(connected)
        group = Group("rebalanced", member_count)
        members = [Member(connection, group) for connection in connected.connections]
        connected.run([(member.connection, member.join_and_stay()) for member in members])
        for number in range(options["warm_up_rebalances"] + options["rebalances"]):
            cpu_before = time.process_time()
            leaver = members[number % member_count]
            duration_ms = rebalance(connected, group, members, leaver)
            if number >= options["warm_up_rebalances"]:
                durations_ms.append(duration_ms)
                cpu_seconds += time.process_time() - cpu_before
            connected.run([(connected.connections[0], check_stable([group]))])
            come_back(connected, group, members, leaver)
    durations_ms.sort()
    print_result(
        p50_ms=percentile(durations_ms, 0.5),
        p99_ms=percentile(durations_ms, 0.99),
        client_cpu_ms=cpu_seconds * 1000 / len(durations_ms),
    )


if __name__ == "__main__":
    main()
