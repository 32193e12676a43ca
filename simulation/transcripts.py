"""Transcripts: text files of requests, clock steps, expected replies and records, run against a coordinator's shard.

Steps are separated by blank lines. In a step, first what happens, then all that must come of it:

    at 1000                            the clock, in ms; alarms that are due do not go off by themselves
    run to 12000                       … as time passes: the alarms due until then go off in order
    alarm session g m1                 one alarm goes off now
    > t1 Heartbeat v4 group_id=g …     a request: ticket, API, version, fields (client=c1 host=/10.0.0.1 may be added)
    marker producer=7 committed        the transaction of a producer ends (or: aborted)
    restart max_size=2                 the shard is given up, and loaded again from its records, perhaps with other options
    options max_size=2                 a new shard with other options; before anything else
    …                                  what else the coordinator's adapter knows (`Adapter.event`)

    < t1 error=UNKNOWN_MEMBER_ID …     a reply; `error` is by name, NONE if not written; other fields as far as written
    + GroupMetadata group=g …          a record; fields as far as written. `+ none`: no record (may be left out)
    @ MarkersToWrite …                 an errand
    ! session g m1 at 11000            an alarm was set; `! session g m1 off`: it was cancelled. Others go unmentioned

Replies, records and errands are all to be stated; records and errands in their order. A line that begins with a space
goes on with the line before; `#` begins a comment.

After each step the records are replayed into a new shard, which must have the same hard state; at the end the shard is
given up, and every ticket must have been answered once.
"""

import shlex
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from penstock.coordination.alarms import AlarmHeap
from penstock.coordination.form import NO_PRODUCER_ID, Outcome, RequestContext, Shard, Ticket
from penstock.wire.schema import Struct
from simulation import consumer_protocol
from simulation.transcript_text import (
    ShortForms,
    TextReader,
    build,
    matches,
    plain,
    without_comment,
    write_fields,
    write_word,
)

EXPECTED = ("<", "+", "@", "!")


class Adapter:
    """What the harness must know of one coordinator. Subclass it, give `apis` and the first two methods."""

    apis: ClassVar[Mapping[str, tuple[type[Struct], str]]] = {}
    """API → (class of its request, method of the shard that takes (request, context, ticket, now_ms))."""
    told_in_full: ClassVar[frozenset[str]] = frozenset()
    """APIs of whose replies every field is to be written, e.g. because the view makes the fields from data."""
    short_forms: ClassVar[ShortForms] = {
        "subscription": consumer_protocol.subscription,
        "assignment": consumer_protocol.assignment,
        "id": consumer_protocol.topic_id,
    }

    def __init__(self) -> None:
        self._ids = count(1)

    def new_shard(self, options: Mapping[str, str]) -> Shard:
        raise NotImplementedError

    def describe_record(self, key: bytes, value: bytes | None) -> tuple[str, Mapping[str, object]]:
        """(kind, fields) of a record; of a tombstone only what its key says, and `deleted=True`."""
        raise NotImplementedError

    def new_id(self) -> str:
        """For shards that make ids: "1", "2", …"""
        return str(next(self._ids))

    def request(self, api: str, fields: dict[str, Any], version: int) -> object:
        """A request from its fields; override it where a shorter way to write them is wanted."""
        return build(self.apis[api][0], fields)

    def call(
        self, shard: Any, api: str, request: Any, context: RequestContext, ticket: Ticket, now_ms: int
    ) -> Outcome:
        outcome: Outcome = getattr(shard, self.apis[api][1])(request, context, ticket, now_ms)
        return outcome

    def event(self, shard: Any, words: Sequence[str], now_ms: int) -> Outcome:
        """What can happen to this coordinator beside requests, e.g. `topic-deleted orders`."""
        raise ValueError(f"nothing is known of {' '.join(words)!r}")

    def view(self, api: str, response: object, *, sparse: bool) -> Any:
        """A response as dicts and lists, for comparing; sparse: for showing, without defaults."""
        return plain(response, sparse=sparse)

    def describe_errand(self, errand: object) -> tuple[str, Mapping[str, object]]:
        fields = plain(errand)
        return type(errand).__name__, fields if isinstance(fields, dict) else {"what": fields}


class _Line(NamedTuple):
    number: int
    text: str


class Happened:
    """What came of a step, in the order in which it came."""

    def __init__(self) -> None:
        self.replies: list[tuple[str, str, object]] = []
        """(ticket, API, response)"""
        self.records: list[tuple[str, Mapping[str, object]]] = []
        self.errands: list[tuple[str, Mapping[str, object]]] = []
        self.alarms: list[str] = []


class Transcript:
    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.now_ms = 0
        self.log: list[tuple[bytes, bytes | None, int] | tuple[int, bool]] = []
        self._options: dict[str, str] = {}
        self._alarms = AlarmHeap()
        self._tickets: dict[Ticket, tuple[str, str]] = {}  # those not answered yet
        self._last_ticket = 0
        self._names: set[str] = set()
        self._start(Happened())

    def _start(self, happened: Happened) -> None:
        self.shard = self.adapter.new_shard(self._options)
        self._do(self.shard.on_loaded(self.now_ms), happened)

    # ── doing ───────────────────────────────────────────────────────────────────────────────────────────────

    def run(self, action: str, happened: Happened) -> None:
        if action.startswith(">"):
            self._request(TextReader(action[1:], self.adapter.short_forms), happened)
        elif action.startswith("options "):
            fields = TextReader(action.removeprefix("options "), self.adapter.short_forms).fields()
            self._options = {name: str(value) for name, value in fields.items()}
            self._start(happened)
        else:
            self._event(shlex.split(action), happened)

    def _event(self, words: list[str], happened: Happened) -> None:
        match words:
            case ["at", at_ms]:
                self.now_ms = int(at_ms)
            case ["run", "to", at_ms]:
                self._run_to(int(at_ms), happened)
            case ["alarm", *key]:
                self._alarms.set(0, tuple(key), None)
                self._do(self.shard.on_alarm(tuple(key), self.now_ms), happened)
            case ["marker", producer, ("committed" | "aborted") as end]:
                producer_id, committed = int(producer.removeprefix("producer=")), end == "committed"
                self.log.append((producer_id, committed))
                self.shard.replay_marker(producer_id, committed=committed)
            case ["restart", *options]:
                self._options |= dict(option.split("=", 1) for option in options)
                self._do(self.shard.on_unload(), happened)
                self._alarms.drop(0)
                self.shard = self._reloaded()
                self._do(self.shard.on_loaded(self.now_ms), happened)
            case _:
                self._do(self.adapter.event(self.shard, words, self.now_ms), happened)

    def _request(self, reader: TextReader, happened: Happened) -> None:
        name, api, version = reader.word(), reader.word(), reader.word()
        if api not in self.adapter.apis:
            raise ValueError(f"there is no API {api} here; there are {', '.join(self.adapter.apis)}")
        if name in self._names or not version.startswith("v"):
            raise ValueError(f"wanted: a new ticket, an API, a version, fields; not {name} {api} {version}")
        fields = reader.fields()
        context = RequestContext(
            int(version[1:]), fields.pop("client", "client"), fields.pop("host", "/127.0.0.1")
        )
        self._last_ticket += 1
        ticket = Ticket(self._last_ticket)
        self._names.add(name)
        self._tickets[ticket] = (name, api)
        request = self.adapter.request(api, fields, context.api_version)
        self._do(self.adapter.call(self.shard, api, request, context, ticket, self.now_ms), happened)

    def _run_to(self, end_ms: int, happened: Happened) -> None:
        while (next_ms := self._alarms.next_at_ms()) is not None and next_ms <= end_ms:
            self.now_ms = max(next_ms, self.now_ms)
            for _, key in self._alarms.due(self.now_ms):
                self._do(self.shard.on_alarm(key, self.now_ms), happened)
        self.now_ms = end_ms

    def _do(self, outcome: Outcome, happened: Happened) -> None:
        """As a host does it: append, replay, set alarms, reply."""
        producer_id = outcome.producer[0] if outcome.producer is not None else NO_PRODUCER_ID
        for key, value in outcome.records:
            self.log.append((key, value, producer_id))
            kind, fields = self.adapter.describe_record(key, value)
            if producer_id != NO_PRODUCER_ID:
                fields = {**fields, "producer_id": producer_id}
            happened.records.append((kind, fields))
        for key, value in outcome.records:
            self.shard.replay(key, value, producer_id)
        for alarm in outcome.alarms:
            self._alarms.set(0, alarm.key, alarm.at_ms)
            when = "off" if alarm.at_ms is None else f"at {alarm.at_ms}"
            happened.alarms.append(" ".join([*map(write_word, alarm.key), when]))
        for ticket, response in outcome.replies:
            if ticket not in self._tickets:
                raise AssertionError(f"ticket {ticket} is answered twice, or was never given out: {response}")
            happened.replies.append((*self._tickets.pop(ticket), response))
        happened.errands.extend(self.adapter.describe_errand(errand) for errand in outcome.errands)

    def _reloaded(self) -> Shard:
        shard = self.adapter.new_shard(self._options)
        for entry in self.log:
            if len(entry) == 2:
                shard.replay_marker(entry[0], committed=entry[1])
            else:
                shard.replay(*entry)
        return shard

    # ── checking ────────────────────────────────────────────────────────────────────────────────────────────

    def check_replay(self) -> None:
        again, mine = self._reloaded().hard_state(), self.shard.hard_state()
        assert again == mine, f"replaying the records gives another hard state:\n  {again}\nnot\n  {mine}"

    def check_unload(self) -> None:
        outcome = self.shard.on_unload()
        assert not outcome.records, "giving the shard up wrote records"
        self._do(outcome, Happened())
        left = [name for name, _ in self._tickets.values()]
        assert not left, f"never answered, not even when the shard was given up: {left}"

    def is_as_written(self, line: str, happened: Happened) -> bool:
        """Whether one expected line is true; what it speaks of is taken out of what happened."""
        sign, reader = line[0], TextReader(line[1:], self.adapter.short_forms)
        if sign == "!":
            wanted = " ".join(line[1:].split())
            return wanted in happened.alarms
        name = reader.word()
        if sign == "+" and name == "none" and reader.is_at_end:
            return not happened.records
        fields = reader.fields()
        if sign == "<":
            for at, (ticket, api, response) in enumerate(happened.replies):
                if ticket == name:
                    view = self.adapter.view(api, response, sparse=False)
                    if isinstance(view, dict) and "error" in view:
                        fields.setdefault("error", "NONE")
                    is_right = matches(fields, view)
                    if api in self.adapter.told_in_full:
                        is_right = is_right and view.keys() | {"error"} == fields.keys() | {"error"}
                    if is_right:
                        del happened.replies[at]
                    return is_right
            return False
        things = happened.records if sign == "+" else happened.errands
        if not things or things[0][0] != name or not matches(fields, plain(things[0][1])):
            return False
        del things[0]
        return True

    def lines_of(self, happened: Happened) -> list[str]:
        """What happened, as a transcript says it."""
        show = consumer_protocol.show_bytes
        lines = []
        for ticket, api, response in happened.replies:
            view = self.adapter.view(api, response, sparse=True)
            lines.append(f"< {ticket} {write_fields(view, show)}".rstrip())
        for sign, things in (("+", happened.records), ("@", happened.errands)):
            lines += [
                f"{sign} {kind} {write_fields(plain(fields), show)}".rstrip() for kind, fields in things
            ]
        return lines


def run_transcript(path: Path, adapter: Adapter, *, rewrite: bool = False) -> None:
    """Run one file; an AssertionError says which line is not as it happened.

    Rewrite: put what happened in place of what was expected, in the steps that are wrong; then read the difference.
    """
    transcript = Transcript(adapter)
    steps = read_steps(path.read_text())
    corrections: dict[int, list[str]] = {}
    for step in steps:
        happened = Happened()
        for line in (line for line in step if not line.text.startswith(EXPECTED)):
            try:
                transcript.run(line.text, happened)
            except (ValueError, KeyError, AssertionError) as error:
                raise AssertionError(f"{path.name}:{line.number}: {line.text}\n  {error}") from error
        got = transcript.lines_of(happened)
        problem = _problem_of(transcript, step, happened)
        if problem is not None and not rewrite:
            raise AssertionError(f"{path.name}:{problem}")
        if problem is not None:
            corrections[step[0].number] = got + [line.text for line in step if line.text.startswith("!")]
        transcript.check_replay()
    transcript.check_unload()
    if corrections:
        _rewrite(path, steps, corrections)
        raise AssertionError(f"{path.name}: {len(corrections)} steps were rewritten; read the difference")


def _problem_of(transcript: Transcript, step: list[_Line], happened: Happened) -> str | None:
    told = "\n  ".join(transcript.lines_of(happened)) or "nothing"
    alarms = "".join(f"\n  ! {alarm}" for alarm in happened.alarms)
    for line in step:
        if line.text.startswith(EXPECTED) and not transcript.is_as_written(line.text, happened):
            return f"{line.number}: expected\n  {line.text}\ngot\n  {told}{alarms}"
    rest = "\n  ".join(transcript.lines_of(happened))
    return f"{step[0].number}: this step does not mention\n  {rest}\nof\n  {told}" if rest else None


def read_steps(text: str) -> list[list[_Line]]:
    steps: list[list[_Line]] = [[]]
    for number, raw in enumerate(text.splitlines(), 1):
        line = without_comment(raw)
        if not raw.strip():
            steps.append([])
        elif line.startswith((" ", "\t")):
            first = steps[-1].pop()
            steps[-1].append(_Line(first.number, f"{first.text} {line.strip()}"))
        elif line:
            if steps[-1] and steps[-1][-1].text.startswith(EXPECTED) and not line.startswith(EXPECTED):
                raise AssertionError(f"line {number}: a new step begins with a blank line")
            steps[-1].append(_Line(number, line))
    return [step for step in steps if step]


def _rewrite(path: Path, steps: list[list[_Line]], corrections: Mapping[int, list[str]]) -> None:
    lines = path.read_text().splitlines()
    for step in reversed(steps):
        if step[0].number not in corrections:
            continue
        end = step[0].number
        while end < len(lines) and lines[end].strip():
            end += 1
        kept, dropping = [], False
        for line in lines[step[0].number - 1 : end]:
            dropping = line.startswith(EXPECTED) or (dropping and line.startswith((" ", "\t")))
            if not dropping:
                kept.append(line)
        lines[step[0].number - 1 : end] = kept + corrections[step[0].number]
    path.write_text("\n".join(lines) + "\n")
