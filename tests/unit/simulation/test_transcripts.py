"""The transcripts harness believes nothing: what is missing, too much or different in a file is found."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from penstock.coordination.form import Outcome, RequestContext, Ticket
from penstock.model.errors import ErrorCode
from penstock.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from simulation.transcripts import Adapter, run_transcript


class NotebookShard:
    """A coordinator as small as can be: a heartbeat notes the generation, and a SyncGroup waits for its alarm."""

    def __init__(self, *, lies: bool) -> None:
        self.notes: dict[bytes, bytes] = {}
        self.waiting: list[Ticket] = []
        self.lies = lies

    def heartbeat(
        self, request: HeartbeatRequest, context: RequestContext, ticket: Ticket, now_ms: int
    ) -> Outcome:
        outcome = Outcome()
        if request.generation_id < 0:
            outcome.reply(ticket, HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION))
            return outcome
        outcome.record(request.group_id.encode(), b"%d" % request.generation_id)
        outcome.reply(ticket, HeartbeatResponse(throttle_time_ms=7))
        outcome.producer = (int(request.member_id), 0) if request.member_id else None
        if self.lies:
            self.notes[b"unrecorded"] = b""
        return outcome

    def sync(
        self, request: SyncGroupRequest, context: RequestContext, ticket: Ticket, now_ms: int
    ) -> Outcome:
        self.waiting.append(ticket)
        outcome = Outcome()
        outcome.alarm(("wake", request.group_id), now_ms + 1_000)
        return outcome

    def replay(self, key: bytes, value: bytes | None, producer_id: int = -1) -> None:
        self.notes[key + (b"?%d" % producer_id if producer_id >= 0 else b"")] = value or b""

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        for key in [key for key in self.notes if key.endswith(b"?%d" % producer_id)]:
            value = self.notes.pop(key)
            if committed:
                self.notes[key.partition(b"?")[0]] = value

    def on_loaded(self, now_ms: int) -> Outcome:
        return Outcome()

    def on_alarm(self, key: tuple[str, ...], now_ms: int) -> Outcome:
        outcome = Outcome()
        while self.waiting:
            outcome.reply(self.waiting.pop(), SyncGroupResponse(assignment=b"%d" % now_ms))
        return outcome

    def on_unload(self) -> Outcome:
        outcome = Outcome()
        for ticket in self.waiting:
            outcome.reply(ticket, SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))
        self.waiting.clear()
        return outcome

    def hard_state(self) -> object:
        return self.notes


class NotebookAdapter(Adapter):
    apis = {"Heartbeat": (HeartbeatRequest, "heartbeat"), "SyncGroup": (SyncGroupRequest, "sync")}  # noqa: RUF012

    def new_shard(self, options: Mapping[str, str]) -> NotebookShard:
        return NotebookShard(lies=options.get("lies") == "true")

    def describe_record(self, key: bytes, value: bytes | None) -> tuple[str, Mapping[str, object]]:
        return "Note", {"group": key.decode(), "generation": int(value or b"0")}


GOOD = """
# A heartbeat is noted, a SyncGroup waits.
at 1000
> t1 Heartbeat v4 group_id=g generation_id=3   # the third
< t1 throttle_time_ms=7
+ Note group=g generation=3

> t2 SyncGroup v5 group_id=g
    member_id="a b"
! wake g at 2000

run to 2500
< t2 assignment=2000

> t3 Heartbeat v4 group_id=g generation_id=-1
< t3 error=ILLEGAL_GENERATION
+ none

> t4 Heartbeat v4 group_id=h generation_id=5 member_id=7
< t4 error=NONE
+ Note group=h producer_id=7

marker producer=7 committed

> t5 SyncGroup v5 group_id=g

restart
< t5 error=NOT_COORDINATOR

> t6 SyncGroup v5 group_id=g

alarm wake g
< t6 assignment="2500"
"""


def run(tmp_path: Path, text: str, *, rewrite: bool = False) -> Path:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    run_transcript(path, NotebookAdapter(), rewrite=rewrite)
    return path


def test_a_transcript_that_tells_what_happens_passes(tmp_path: Path) -> None:
    run(tmp_path, GOOD)


@pytest.mark.parametrize(
    ("right", "wrong", "at"),
    [
        ("< t1 throttle_time_ms=7\n", "", "notes.txt:3: this step does not mention\n  < t1"),
        ("+ Note group=g generation=3\n", "", "notes.txt:3: this step does not mention\n  + Note"),
        ("< t1 throttle_time_ms=7", "< t1 throttle_time_ms=8", "notes.txt:5: expected"),
        ("< t1 throttle_time_ms=7", "< t2 throttle_time_ms=7", "notes.txt:5: expected"),
        ("< t1 throttle_time_ms=7", "< t1 throttle_time_ms=7\n< t1", "notes.txt:6: expected"),
        ("< t1 throttle_time_ms=7", "< t1 no_such_field=7", "notes.txt:5: expected"),
        ("+ Note group=g generation=3", "+ Note group=g generation=4", "notes.txt:6: expected"),
        ("+ Note group=g generation=3", "+ Page group=g generation=3", "notes.txt:6: expected"),
        ("+ Note group=g generation=3", "+ Note group=g\n+ Note group=g", "notes.txt:7: expected"),
        ("+ Note group=g generation=3", "+ none", "notes.txt:6: expected"),
        ("< t3 error=ILLEGAL_GENERATION", "< t3", "notes.txt:16: expected"),
        ("! wake g at 2000", "! wake g at 2001", "notes.txt:10: expected"),
        ("run to 2500", "run to 1500", "notes.txt:13: expected"),
        ("+ none\n", "@ MarkersToWrite\n", "notes.txt:17: expected"),
    ],
)
def test_what_is_missing_too_much_or_different_is_told_with_its_line(
    tmp_path: Path, right: str, wrong: str, at: str
) -> None:
    assert right in GOOD
    with pytest.raises(AssertionError) as told:
        run(tmp_path, GOOD.replace(right, wrong))
    assert str(told.value).startswith(at)


def test_what_cannot_be_read_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"notes.txt:1: .*\n.*no field genration_id"):
        run(tmp_path, "> t1 Heartbeat v4 genration_id=3\n< t1\n")


def test_a_shard_that_changes_without_a_record_is_found(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="another hard state"):
        run(tmp_path, "options lies=true\n> t1 Heartbeat v4 group_id=g\n< t1\n+ Note\n")


def test_a_ticket_that_is_never_answered_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NotebookShard, "on_unload", lambda shard: Outcome())
    with pytest.raises(AssertionError, match=r"never answered.*t1"):
        run(tmp_path, "> t1 SyncGroup v5 group_id=g\n")


def test_a_rewritten_transcript_tells_what_happens_and_keeps_its_comments(tmp_path: Path) -> None:
    wrong = GOOD.replace("< t1 throttle_time_ms=7\n", "").replace("assignment=2000", "assignment=no")
    with pytest.raises(AssertionError, match="2 steps were rewritten"):
        run(tmp_path, wrong, rewrite=True)
    rewritten = (tmp_path / "notes.txt").read_text()
    assert "# A heartbeat is noted" in rewritten
    run(tmp_path, rewritten)
