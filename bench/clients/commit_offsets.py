"""Members of groups of their own, as bare sockets, who commit one after the other as fast as they are answered.

Each commit is answered before the same client sends its next. One prepared request per client is sent again and again, and the
answers need only be equal: that of a commit before the clock runs, and of one after it, is read. So the client costs
little.
"""

import select
import time

from bench.clients.options import print_result, read_options
from bench.group_members import Group, Member
from bench.measure import percentile
from bench.offsets import check_commit, commit_ask, wait_for_coordinators
from bench.swarm import ANSWER_TIMEOUT_S, Ask, Connection, Script, Swarm, swarm

OFFSET = 1_234_567


class Committer:
    def __init__(self, connection: Connection, number: int, topic: str, partition_count: int) -> None:
        self.connection = connection
        self.sock = connection.sock
        self._member = Member(connection, Group(f"committing-{number}", 1))
        self._topic = topic
        self._partition_count = partition_count
        self.frame = b""
        self.sent_at = 0.0

    def join_and_commit(self) -> Script:
        yield from self._member.join()
        self.frame = self._ask().frame
        yield from self.commit()

    def commit_and_leave(self) -> Script:
        yield from self.commit()
        yield from self._member.leave()

    def commit(self) -> Script:
        check_commit((yield self._ask()))

    def _ask(self) -> Ask:
        return commit_ask(
            self._member.group.group_id,
            self._topic,
            self._partition_count,
            offset=OFFSET,
            member_id=self._member.member_id,
            generation_id=self._member.generation_id,
        )


def commit_for(committers: list[Committer], *, warm_up_s: float, seconds: float) -> list[float]:
    """The latencies, in milliseconds, of what was sent after the warm-up."""
    poll = select.epoll()
    by_number = {each.sock.fileno(): each for each in committers}
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    clock = time.perf_counter
    began = clock()
    warm_until, until = began + warm_up_s, began + warm_up_s + seconds
    latencies: list[float] = []
    expected: bytes | None = None
    unanswered = len(committers)
    for each in committers:
        each.sent_at = clock()
        each.sock.sendall(each.frame)
    while unanswered:
        ready = poll.poll(ANSWER_TIMEOUT_S)
        if not ready:
            raise SystemExit(f"no answer within {ANSWER_TIMEOUT_S:g} s")
        for number, _ in ready:
            each = by_number[number]
            answer = each.connection.receive()
            if answer is None:
                continue
            now = clock()
            if answer != (expected := expected or answer):
                raise SystemExit("a commit was answered otherwise than the one before it")
            if warm_until <= each.sent_at < until:
                latencies.append((now - each.sent_at) * 1000)
            if now < until:
                each.sent_at = now
                each.sock.sendall(each.frame)
            else:
                unanswered -= 1
    poll.close()
    return latencies


def prepare(connected: Swarm, topic: str, partition_count: int) -> list[Committer]:
    wait_for_coordinators(connected)
    committers = [
        Committer(connection, number, topic, partition_count)
        for number, connection in enumerate(connected.connections)
    ]
    connected.run([(each.connection, each.join_and_commit()) for each in committers])
    return committers


def main() -> None:
    options = read_options()
    with swarm(options["bootstrap"], options["client_count"]) as connected:
        committers = prepare(connected, options["topic"], options["partition_count"])
        cpu_before = time.process_time()
        latencies = commit_for(committers, warm_up_s=options["warm_up_s"], seconds=options["seconds"])
        cpu_seconds = time.process_time() - cpu_before
        connected.run([(each.connection, each.commit_and_leave()) for each in committers])
    latencies.sort()
    print_result(
        commits_per_s=len(latencies) / options["seconds"],
        p50_ms=percentile(latencies, 0.5),
        p99_ms=percentile(latencies, 0.99),
        client_cpu_share=cpu_seconds / (options["warm_up_s"] + options["seconds"]),
    )


if __name__ == "__main__":
    main()
