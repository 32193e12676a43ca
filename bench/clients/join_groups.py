"""Groups whose members all join at once, as bare sockets; from the first request until the last group is whole.

Each pass takes new groups. Between passes everybody leaves.
"""

import time

from bench.clients.options import print_result, read_options
from bench.group_members import Group, Member, check_stable
from bench.measure import percentile
from bench.offsets import wait_for_coordinators
from bench.swarm import Swarm, swarm

GROUPS_PER_DESCRIBE = 250


def join_all(connected: Swarm, groups: list[Group]) -> tuple[float, int]:
    """Seconds, and how many requests that took.

    The members of a group have neighbouring connections and ask one after the other.
    """
    connections = iter(connected.connections)
    members = [Member(next(connections), group) for group in groups for _ in range(group.wanted)]
    requests_before = connected.request_count
    began = time.perf_counter()
    connected.run([(member.connection, member.join_and_stay()) for member in members])
    seconds = max(group.whole_at or 0.0 for group in groups) - began
    request_count = connected.request_count - requests_before
    for at in range(0, len(groups), GROUPS_PER_DESCRIBE):
        described = check_stable(groups[at : at + GROUPS_PER_DESCRIBE])
        connected.run([(connected.connections[0], described)])
    connected.run([(member.connection, member.leave()) for member in members])
    return seconds, request_count


def main() -> None:
    options = read_options()
    group_count, group_size = options["group_count"], options["group_size"]
    seconds, requests, cpu_seconds = [], [], []
    with swarm(options["bootstrap"], group_count * group_size) as connected:
        wait_for_coordinators(connected)
        for pass_number in range(options["warm_up_passes"] + options["passes"]):
            groups = [Group(f"joined-{pass_number}-{number}", group_size) for number in range(group_count)]
            cpu_before = time.process_time()
            each_s, request_count = join_all(connected, groups)
            seconds.append(each_s)
            requests.append(request_count)
            cpu_seconds.append(time.process_time() - cpu_before)
    counted = slice(options["warm_up_passes"], None)
    print_result(
        seconds=percentile(sorted(seconds[counted]), 0.5),
        first_pass_s=seconds[0],
        request_count=percentile(sorted(requests[counted]), 0.5),
        client_cpu_s=percentile(sorted(cpu_seconds[counted]), 0.5),
    )


if __name__ == "__main__":
    main()
