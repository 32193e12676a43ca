"""Commits offsets for many groups, once each, over a few bare sockets; or checks that they are all there."""

import time
from collections.abc import Sequence

from bench.clients.options import print_result, read_options
from bench.offsets import check_commit, commit_ask, committed, fetch_ask, wait_for_coordinators
from bench.swarm import Script, swarm

CONNECTIONS = 8
GROUPS_PER_FETCH = 500


def commit_each(numbers: Sequence[int], topic: str, partition_count: int) -> Script:
    for number in numbers:
        check_commit((yield commit_ask(group_name(number), topic, partition_count, offset=number)))


def check_each(numbers: Sequence[int], partition_count: int) -> Script:
    answered = yield fetch_ask([group_name(number) for number in numbers])
    for number, group in zip(numbers, answered.groups, strict=True):
        if committed(group) != [number] * partition_count:
            raise SystemExit(f"{group.group_id} has committed {committed(group)}, error {group.error_code}")


def group_name(number: int) -> str:
    return f"loaded-{number:05}"


def main() -> None:
    options = read_options()
    group_count, partition_count = options["group_count"], options["partition_count"]
    began = time.perf_counter()
    with swarm(options["bootstrap"], CONNECTIONS) as connected:
        if options["check"]:
            for at in range(0, group_count, GROUPS_PER_FETCH):
                numbers = range(at, min(at + GROUPS_PER_FETCH, group_count))
                connected.run([(connected.connections[0], check_each(numbers, partition_count))])
        else:
            wait_for_coordinators(connected)
            connected.run(
                (
                    connection,
                    commit_each(range(at, group_count, CONNECTIONS), options["topic"], partition_count),
                )
                for at, connection in enumerate(connected.connections)
            )
    print_result(seconds=time.perf_counter() - began)


if __name__ == "__main__":
    main()
