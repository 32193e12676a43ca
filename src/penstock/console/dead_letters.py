"""A dead letter topic looked through: how many letters there are of each cause, and the newest of each.

Letters of `penstock.consumer` and of programs of streams say where they came from and why; those of Connect's connectors say so
where `errors.deadletterqueue.context.headers.enable` is true. Keys and values are kept as text, cut short, as far as the visitor
may see them; where anything is masked from the visitor, so is what an exception says, which may quote it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from penstock.admin.dead_letters.reading import DeadLetterReader, Letter
from penstock.client.clients import Connection
from penstock.console.access.masking import HIDDEN, Mask, MaskingRule
from penstock.console.access.roles import Role, matches
from penstock.console.messages.decode import PartDecoder, Registry, Shown
from penstock.consumer.dead_letters import PREFIX

MAX_LOOKED_AT: Final = 50_000
MAX_SAMPLES: Final = 40
"""Of one cause."""
MAX_CAUSES: Final = 100
MAX_KEPT_BYTES: Final = 16_384
"""A letter that is larger is made short at once, though it may turn out not to be one of the newest."""
MAX_TEXT_CHARS: Final = 4000
MAX_HEADERS: Final = 60
OTHER_CAUSES: Final = "…"
CONNECT: Final = "__connect.errors."
NAMED_SO: Final = ("dlq", "dead-letter", "dead_letter", "deadletter", "dead.letter")
"""What is in the name of a topic that is probably one of dead letters."""


MaskOf = Callable[[str], Mask | None]
"""What is masked of letters that came from a topic."""


class Why(NamedTuple):
    """What a letter says of itself. `topic` is empty where it says nothing."""

    topic: str = ""
    partition: int = -1
    offset: int = -1
    by: str = ""
    """The group, or the connector."""
    cause: str = ""
    """The exception's class."""
    message: str = ""
    stack: str = ""
    attempts: int = 0
    first_ms: int | None = None
    last_ms: int | None = None


class Sample(NamedTuple):
    partition: int
    offset: int
    at_ms: int | None
    is_replayed: bool
    why: Why
    key: str
    value: str
    headers: tuple[tuple[str, str], ...]


class Cause(NamedTuple):
    name: str
    letters: int
    waiting: int
    """Of them not replayed yet."""
    first_ms: int | None
    last_ms: int | None
    topics: tuple[str, ...]
    message: str
    """Of the newest."""
    samples: tuple[Sample, ...]
    """The newest first."""


class Looked(NamedTuple):
    causes: tuple[Cause, ...]
    """The commonest first."""
    seen: int
    total: int
    """Offsets between the first and the end; fewer letters where some are gone or marks of transactions."""

    @property
    def is_cut(self) -> bool:
        return self.seen >= MAX_LOOKED_AT


def is_named_so(topic: str) -> bool:
    plain = topic.lower()
    return any(part in plain for part in NAMED_SO)


def look(
    bootstrap: str,
    properties: Mapping[str, str],
    topic: str,
    *,
    mask_of: MaskOf,
    registry: Registry | None,
    stopped: threading.Event,
) -> Looked:
    """Blocks. UserError, Unreachable, Refused."""
    reader = DeadLetterReader(Connection(bootstrap, dict(properties)), topic)
    try:
        replayed = reader.replayed()
        found = _Found(topic, mask_of, registry)
        for letter in reader.letters():
            number, offset = letter.place
            found.add(letter, is_replayed=offset in replayed[number])
            if found.seen >= MAX_LOOKED_AT or stopped.is_set():
                break
        return Looked(found.causes(), found.seen, sum(reader.ends.values()))
    finally:
        reader.close()


class _Found:
    def __init__(self, topic: str, mask_of: MaskOf, registry: Registry | None) -> None:
        self._topic, self._mask_of, self._registry = topic, cache(mask_of), registry
        self._by_cause: dict[str, _CauseSoFar] = {}
        self.seen = 0

    def add(self, letter: Letter, *, is_replayed: bool) -> None:
        self.seen += 1
        why = why_of(letter)
        name = why.cause
        if name not in self._by_cause and len(self._by_cause) >= MAX_CAUSES:
            name = OTHER_CAUSES
        one = self._by_cause.setdefault(name, _CauseSoFar())
        at_ms = why.last_ms if why.last_ms is not None else _timestamp(letter)
        one.count += 1
        one.waiting += not is_replayed
        one.first_ms = at_ms if one.first_ms is None else min(one.first_ms, at_ms or one.first_ms)
        one.last_ms = at_ms if one.last_ms is None else max(one.last_ms, at_ms or one.last_ms)
        if len(one.topics) < MAX_SAMPLES:
            one.topics.add(why.topic)
        is_large = len(letter.message.value() or b"") > MAX_KEPT_BYTES
        kept = (letter, why, is_replayed)
        one.samples.append(self._sample(*kept) if is_large else kept)

    def causes(self) -> tuple[Cause, ...]:
        found = []
        for name, one in self._by_cause.items():
            samples = tuple(
                each if isinstance(each, Sample) else self._sample(*each) for each in reversed(one.samples)
            )
            topics, message = tuple(sorted(filter(None, one.topics))), samples[0].why.message
            found.append(
                Cause(name, one.count, one.waiting, one.first_ms, one.last_ms, topics, message, samples)
            )
        return tuple(sorted(found, key=lambda each: (-each.letters, each.name)))

    def _sample(self, letter: Letter, why: Why, is_replayed: bool) -> Sample:
        message, mask = letter.message, self._mask_of(why.topic)
        partition, offset = letter.place
        if mask is not None:
            why = why._replace(message=HIDDEN if why.message else "", stack=HIDDEN if why.stack else "")
        key, value = (
            PartDecoder(self._topic, is_key=is_key, registry=self._registry, mask=mask).shown(data)
            for is_key, data in ((True, message.key()), (False, message.value()))
        )
        headers = tuple(
            (name, _header(mask, name, value))
            for name, value in list(message.headers() or ())[:MAX_HEADERS]
            if not name.startswith((PREFIX, CONNECT))
        )
        return Sample(
            partition, offset, _timestamp(letter), is_replayed, why, _text(key), _text(value), headers
        )


def _text(shown: Shown) -> str:
    return "null" if shown.kind == "null" else shown.text[:MAX_TEXT_CHARS]


def _header(mask: Mask | None, name: str, value: bytes | None) -> str:
    text = "null" if value is None else value.decode(errors="replace")[:MAX_TEXT_CHARS]
    return text if mask is None else str(mask.header(name, text))


class _CauseSoFar:
    def __init__(self) -> None:
        self.count = self.waiting = 0
        self.first_ms: int | None = None
        self.last_ms: int | None = None
        self.topics: set[str] = set()
        self.samples: deque[Sample | tuple[Letter, Why, bool]] = deque(maxlen=MAX_SAMPLES)


def why_of(letter: Letter) -> Why:
    dead = letter.dead
    if dead is not None:
        failure = dead.failure
        return Why(
            dead.topic, dead.partition, dead.offset, dead.group, failure.cause, failure.message, failure.stack,
            failure.attempts, failure.first_failure_ms, failure.last_failure_ms,
        )  # fmt: skip
    return _of_connect(letter.message.headers() or ())


def _of_connect(headers: Iterable[tuple[str, bytes | None]]) -> Why:
    said = {
        name.removeprefix(CONNECT): (value or b"").decode(errors="replace")
        for name, value in headers
        if name.startswith(CONNECT)
    }
    if not said:
        return Why()
    return Why(
        topic=said.get("topic", ""),
        partition=_number(said.get("partition")),
        offset=_number(said.get("offset")),
        by=said.get("connector.name", ""),
        cause=said.get("exception.class.name", ""),
        message=said.get("exception.message", ""),
        stack=said.get("exception.stacktrace", ""),
    )


def _number(text: str | None) -> int:
    """Of a source the place is no number."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 20 else -1


def _timestamp(letter: Letter) -> int | None:
    kind, at_ms = letter.message.timestamp()
    return int(at_ms) if kind else None


def mask_of(rules: Iterable[MaskingRule], roles: Iterable[Role], *topics: str) -> Mask | None:
    """By the rules for any of the topics: for a letter, of its own and of the one that it came from."""
    names = {role.name for role in roles}
    found = [
        rule
        for rule in rules
        if names.isdisjoint(rule.except_roles)
        and any(matches(pattern, topic) for pattern in rule.topics for topic in topics)
    ]
    return Mask(found) if found else None


def topics_of(names: Iterable[str], extra: Sequence[str] = ()) -> list[str]:
    """Of all topics those that are probably of dead letters."""
    known = set(extra)
    return sorted(name for name in names if name in known or is_named_so(name))
