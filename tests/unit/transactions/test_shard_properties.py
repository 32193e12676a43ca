"""What holds for a transaction shard whatever its clients do, in any order and at any time."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.errors import ErrorCode
from penstock.transactions.options import TransactionOptions
from penstock.transactions.records import write_key, write_value
from penstock.transactions.state import (
    CLIENT_EPOCH_MAX,
    EPOCH_MAX,
    MAY_FOLLOW,
    TransactionMetadata,
    TransactionState,
)
from tests.unit.transactions.harness import Harness

IDS = ("tx", "ty")
TIMEOUT_MS = 10_000
EXPIRATION_MS = 100_000

who = st.integers(0, 2)
steps = st.one_of(
    st.tuples(st.just("init"), who, st.sampled_from([3, 5])),
    st.tuples(st.just("go_on"), who, st.sampled_from([3, 5])),
    st.tuples(st.just("add"), who, st.integers(0, 2), st.sampled_from([1, 3, 4, 5])),
    st.tuples(st.just("add"), who, st.integers(0, 2), st.just(5)),
    st.tuples(st.just("add_offsets"), who, st.sampled_from([1, 3])),
    st.tuples(st.just("verify"), who, st.integers(0, 2)),
    st.tuples(st.just("end"), who, st.booleans(), st.sampled_from([1, 4])),
    st.tuples(st.just("end"), who, st.booleans(), st.just(5)),
    st.tuples(st.just("end_again"), who, st.booleans()),
    st.tuples(st.just("markers"), st.integers(-3, 0)),
    st.tuples(st.just("markers"), st.just(-1)),
    st.tuples(st.just("markers"), st.just(-1)),
    st.tuples(st.just("wait"), st.sampled_from([0, 1, 500, TIMEOUT_MS, EXPIRATION_MS])),
    st.tuples(st.just("restart")),
)


class World:
    """Three clients, two of which have the same transactional id; they use what they were last told."""

    def __init__(self, first_epoch: int, transaction_version: int) -> None:
        self.harness = Harness(
            TransactionOptions(
                transactional_id_expiration_ms=EXPIRATION_MS,
                expiration_check_interval_ms=1_000,
                transaction_version=transaction_version,
            )
        )
        self.known = [(-1, -1)] * 3
        self.before = [(-1, -1)] * 3
        self.given_out: set[tuple[int, int]] = set()
        if first_epoch >= 0:  # the log of an earlier time, in which most epochs are used up
            old = TransactionMetadata(1, first_epoch, TIMEOUT_MS, TransactionState.EMPTY, frozenset(), 0)
            self.harness.log.append((write_key("tx"), write_value(old, version=1)))
            self.harness.restart()

    def step(self, name: str, *values: Any) -> None:
        states = {one: self.harness.state_of(one) for one in IDS}
        since = len(self.harness.log)
        getattr(self, name)(*values)
        self.check_records(states, since)
        assert self.harness.reloaded().hard_state() == self.harness.shard.hard_state()
        assert len(self.harness.replies) == self.harness.tickets, "a request is not answered"

    def check_records(self, states: dict[str, TransactionMetadata | None], since: int) -> None:
        for name, after in self.harness.recorded(since):
            assert name is not None
            before, states[name] = states[name], after
            if after is None or before is None:
                continue
            assert before.state in MAY_FOLLOW[after.state]
            if after.producer_id == before.producer_id:
                assert after.producer_epoch >= before.producer_epoch
            else:
                assert before.is_epoch_exhausted
                has_previous_id = self.harness.options.transaction_version > 0
                assert not has_previous_id or after.previous_producer_id == before.producer_id

    def tell(self, client: int, producer_id: int, producer_epoch: int) -> None:
        assert 0 <= producer_epoch <= CLIENT_EPOCH_MAX
        self.before[client] = self.known[client]
        self.known[client] = (producer_id, producer_epoch)

    def is_current(self, client: int) -> bool:
        state = self.harness.state_of(IDS[client % 2])
        return state is not None and self.known[client] == (state.producer_id, state.producer_epoch)

    # ── steps ───────────────────────────────────────────────────────────────────────────────────────────────

    def init(self, client: int, version: int) -> None:
        since = len(self.harness.log)
        answer = self.harness.init(IDS[client % 2], version=version, timeout_ms=TIMEOUT_MS)
        if answer.error_code == ErrorCode.NONE:
            told = (answer.producer_id, answer.producer_epoch)
            assert told not in self.given_out, "two producers have the same epoch"
            self.given_out.add(told)
            self.tell(client, *told)
        else:
            assert answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
            assert all(self.is_abort(after) for _, after in self.harness.recorded(since))

    def is_abort(self, after: TransactionMetadata | None) -> bool:
        assert after is not None
        return after.state in (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT)

    def go_on(self, client: int, version: int) -> None:
        name, known = IDS[client % 2], self.known[client]
        before, was_current = self.harness.state_of(name), self.is_current(client)
        since = len(self.harness.log)
        answer = self.harness.init(name, version=version, timeout_ms=TIMEOUT_MS, known=known)
        if answer.error_code == ErrorCode.NONE:
            told = (answer.producer_id, answer.producer_epoch)
            if before is not None and known != (-1, -1) and not was_current:
                # A repetition: nobody has got anything since, or else it must be fenced.
                is_same = told == (before.producer_id, before.producer_epoch)
                assert is_same or before.producer_epoch == EPOCH_MAX
            self.tell(client, *told)
        elif not was_current and known != (-1, -1):
            assert self.harness.log[since:] == []

    def add(self, client: int, partition: int, version: int) -> None:
        self.check_success(
            client,
            lambda name, known: self.error_of(self.harness.add(name, known, partition, version=version)),
        )

    def add_offsets(self, client: int, version: int) -> None:
        self.check_success(
            client,
            lambda name, known: self.harness.add_offsets(name, known, version=version).error_code,
        )

    def verify(self, client: int, partition: int) -> None:
        since = len(self.harness.log)
        self.check_success(
            client,
            lambda name, known: self.error_of(
                self.harness.add(name, known, partition, version=4, verify_only=True)
            ),
        )
        assert self.harness.log[since:] == []

    def error_of(self, result: Any) -> int:
        (topic,) = result.topic_results
        (partition,) = topic.results_by_partition
        error: int = partition.partition_error_code
        return error

    def check_success(self, client: int, ask: Any) -> None:
        """Only the current producer succeeds, and what fails leaves no trace."""
        was_current, since = self.is_current(client), len(self.harness.log)
        error = ask(IDS[client % 2], self.known[client])
        if error == ErrorCode.NONE:
            assert was_current, "a fenced producer has succeeded"
            state = self.harness.state_of(IDS[client % 2])
            assert state is not None
            assert state.state is TransactionState.ONGOING
        else:
            assert self.harness.log[since:] == []

    def end(self, client: int, committed: bool, version: int) -> None:
        self.end_with(client, self.known[client], committed, version)

    def end_again(self, client: int, committed: bool) -> None:
        """The answer was lost; or an old request turns up again."""
        self.end_with(client, self.before[client], committed, 5)

    def end_with(self, client: int, known: tuple[int, int], committed: bool, version: int) -> None:
        name, since = IDS[client % 2], len(self.harness.log)
        before = self.harness.state_of(name)
        answer = self.harness.end(name, known, committed=committed, version=version)
        records = [after for _, after in self.harness.recorded(since) if after is not None]
        if answer.error_code != ErrorCode.NONE:
            assert records == []
            return
        assert before is not None
        if records:
            assert known == (before.producer_id, before.producer_epoch), "a fenced producer has succeeded"
            assert not committed or before.state is TransactionState.ONGOING
            decided = TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT
            assert records[0].state is decided
        else:
            decided = TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT
            assert before.state is decided
        if version >= 5:
            self.tell(client, answer.producer_id, answer.producer_epoch)

    def markers(self, which: int) -> None:
        self.harness.write_markers(which)

    def wait(self, step_ms: int) -> None:
        self.harness.advance(step_ms)

    def restart(self) -> None:
        self.harness.restart()


@settings(max_examples=400)
@given(
    st.sampled_from([-1, -1, CLIENT_EPOCH_MAX - 3, CLIENT_EPOCH_MAX]),
    st.sampled_from([2, 2, 2, 1, 0]),
    st.lists(steps, max_size=40),
)
def test_whatever_happens_the_rules_hold(
    first_epoch: int, transaction_version: int, script: list[tuple[Any, ...]]
) -> None:
    world = World(first_epoch, transaction_version)
    for step in script:
        world.step(*step)
    # All that is decided comes to its end, and then everybody can begin anew.
    for which in range(len(world.harness.errands)):
        world.step("markers", which)
    for client in range(3):
        world.step("init", client, 5)
        world.step("markers", -1)
        world.step("init", client, 5)
        assert world.is_current(client)
