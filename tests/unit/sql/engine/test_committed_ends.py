"""One question for all who ask at once. The cluster is a fake: what is asked of it is in `tests/sql/test_views.py`."""

import threading
import time

import pytest

from penstock.client.clients import Connection
from penstock.client.errors import ReadFailed
from penstock.sql.engine.committed_ends import CommittedEnds


class Ends(CommittedEnds):
    """Its questions are answered with their number, when the test lets them."""

    def __init__(self) -> None:
        super().__init__(Connection("127.0.0.1:1"), "t")
        self.gate = threading.Semaphore(0)
        self.asked = 0

    def _ask(self) -> dict[int, int]:
        self.asked += 1
        number = self.asked
        assert self.gate.acquire(timeout=10)
        if number == 3:
            raise ReadFailed("nobody answers")
        return {0: number}


def ask(ends: Ends, found: list[object]) -> threading.Thread:
    def run() -> None:
        try:
            found.append(ends.now()[0])
        except ReadFailed as error:
            found.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def wait_for(ends: Ends, asked: int) -> None:
    deadline = time.monotonic() + 10
    while ends.asked < asked:
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.fixture
def ends():
    ends = Ends()
    yield ends
    ends.close()


def test_who_comes_during_a_question_gets_the_answer_to_the_next(ends: Ends):
    first: list[object] = []
    later: list[object] = []
    threads = [ask(ends, first)]
    wait_for(ends, 1)
    threads += [ask(ends, later) for _ in range(5)]
    ends.gate.release()
    threads[0].join(10)
    assert first == [1]
    wait_for(ends, 2)
    ends.gate.release()
    # Those that were slow to come may need one more question, which is the one that fails.
    ends.gate.release()
    for each in threads:
        each.join(10)
    assert len(later) == 5
    assert set(later) <= {2, "nobody answers"}
    assert ends.asked <= 3


def test_a_failure_is_everyone_s_and_the_next_question_is_asked_anew(ends: Ends):
    ends.gate.release(3)
    assert ends.now() == {0: 1}
    assert ends.now() == {0: 2}
    with pytest.raises(ReadFailed, match="nobody answers"):
        ends.now()
    ends.gate.release()
    assert ends.now() == {0: 4}
