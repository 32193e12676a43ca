"""Whether what is valid under an old schema is valid under a new one, by Confluent's rules.

    compare(old, new, policy)  → Findings

Pairs of nodes are compared, each pair once. The comparison of a pair is a generator that asks for the pairs below it. So the
depth of a schema is no matter for Python's stack, and one place counts the pairs.

Schemas may contain themselves. A pair that is met again while it is being compared is taken for compatible. If anything
incompatible is found in the end, all is compared once more with the pairs that are known to be incompatible, until no more are
found: then nothing rests on an assumption that was wrong.

Limits: MAX_PAIRS comparisons, whatever the schemas; beyond it the answer is "incompatible", and says why.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from penstock.schemas.json_schema import arrays, combined, objects, scalars
from penstock.schemas.json_schema.differences import TOO_LARGE, Findings, accepted
from penstock.schemas.json_schema.nodes import (
    ALL,
    ANY,
    ONE,
    Anything,
    Array,
    Combined,
    Const,
    Enum,
    Node,
    Not,
    Nothing,
    Number,
    Object,
    Reference,
    String,
)
from penstock.schemas.json_schema.pairs import Pair

MAX_PAIRS: Final = 100_000
MAX_REFERENCE_CHAIN: Final = 1_000
_BYTES: Final = "bytes"


def compare(old: Node, new: Node, policy: str) -> Findings:
    known: dict[tuple[int, int], Findings] = {}
    left = MAX_PAIRS
    while True:
        search = _Search(accepted(policy), known, left)
        found = search.run(old, new)
        broken = {key: each for key, each in search.done.items() if not each.is_compatible}
        if not search.has_assumed or search.left <= 0 or broken.keys() == known.keys():
            return found
        known, left = broken, search.left


class _Search:
    """One pass over all pairs."""

    def __init__(self, accepted: frozenset[str], known: dict[tuple[int, int], Findings], left: int) -> None:
        self._accepted = accepted
        self._known = known
        self.left = left
        self.done: dict[tuple[int, int], Findings] = {}
        self.has_assumed = False

    def run(self, old: Node, new: Node) -> Findings:
        answer = self._start(Pair(old, new))
        stack: list[_Open] = []
        open_keys: set[tuple[int, int]] = set()
        while True:
            if self.left <= 0:
                found = Findings(self._accepted)
                found.add(TOO_LARGE)
                return found
            if isinstance(answer, _Open):
                stack.append(answer)
                open_keys.add(answer.key)
                reply = None
            elif not stack:
                return answer
            else:
                reply = answer
            current = stack[-1]
            try:
                pair = next(current.steps) if reply is None else current.steps.send(reply)
            except StopIteration:
                stack.pop()
                open_keys.discard(current.key)
                self.done[current.key] = answer = current.found
                continue
            answer = self._start(pair, open_keys)

    def _start(self, pair: Pair, open_keys: set[tuple[int, int]] | None = None) -> _Open | Findings:
        old, new = resolved(pair.old), resolved(pair.new)
        key = (id(old), id(new))
        done = self.done.get(key)
        if done is not None:
            return done
        found = Findings(self._accepted)
        if open_keys and key in open_keys:
            known = self._known.get(key)
            if known is None:
                self.has_assumed = True
            return known or found
        self.left -= 1
        return _Open(key, found, _compared(old, new, found))


class _Open:
    """A pair that is being compared."""

    __slots__ = ("found", "key", "steps")

    def __init__(self, key: tuple[int, int], found: Findings, steps: Generator[Pair, Findings, None]) -> None:
        self.key = key
        self.found = found
        self.steps = steps


_UNKNOWN: Final = Anything()


def resolved(node: Node) -> Node:
    """What a `$ref` leads to. One that leads only to itself says nothing."""
    for _ in range(MAX_REFERENCE_CHAIN):
        if not isinstance(node, Reference):
            return node
        if node.target is None:
            return _UNKNOWN
        node = node.target.node
    return _UNKNOWN


def _compared(old: Node, new: Node, found: Findings) -> Generator[Pair, Findings, None]:
    if isinstance(new, Combined) and not isinstance(old, Combined):
        if (yield from _joined_an_union(old, new, found)):
            return
    elif (
        isinstance(old, Combined)
        and not isinstance(new, Combined)
        and (yield from _left_a_product(old, new, found))
    ):
        return
    if type(old) is not type(new):
        if isinstance(old, Nothing) or isinstance(new, Anything):
            return
        if old.connect_type == _BYTES == new.connect_type:
            return  # Connect's decimals may become numbers where they were strings of bytes
        found.add("TYPE_CHANGED")
        return
    _annotations(old, new, found)
    match old, new:
        case String(), String():
            scalars.compare_strings(old, new, found)
        case Number(), Number():
            scalars.compare_numbers(old, new, found)
        case Const(), Const():
            scalars.compare_constants(old, new, found)
        case Enum(), Enum():
            scalars.compare_enums(old, new, found)
        case Combined(), Combined():
            yield from combined.compare(old, new, found)
        case Not(), Not():
            below = yield Pair(new.child.node, old.child.node)  # the other way round
            found.add("NOT_TYPE_NARROWED" if below.is_compatible else "NOT_TYPE_EXTENDED", "not")
        case Object(), Object():
            yield from objects.compare(old, new, found)
        case Array(), Array():
            yield from arrays.compare(old, new, found)


def _joined_an_union(old: Node, new: Combined, found: Findings) -> Generator[Pair, Findings, bool]:
    if len(new.parts) == 1:
        below = yield Pair(old, new.parts[0].node)
        if below.is_compatible:
            found.take(below)
            return True
    elif new.criterion in (ANY, ONE):
        for part in new.parts:
            below = yield Pair(old, part.node)
            if below.is_compatible:
                found.take(below)
                found.add("SUM_TYPE_EXTENDED")
                return True
    return False


def _left_a_product(old: Combined, new: Node, found: Findings) -> Generator[Pair, Findings, bool]:
    if len(old.parts) == 1:
        below = yield Pair(old.parts[0].node, new)
        if below.is_compatible:
            found.take(below)
            return True
    elif old.criterion == ALL:
        for part in old.parts:
            below = yield Pair(part.node, new)
            if below.is_compatible:
                found.take(below)
                found.add("PRODUCT_TYPE_NARROWED")
                return True
    return False


def _annotations(old: Node, new: Node, found: Findings) -> None:
    if old.id != new.id:
        found.add("ID_CHANGED")
    if old.title != new.title:
        found.add("TITLE_CHANGED")
    if old.description != new.description:
        found.add("DESCRIPTION_CHANGED")
    if old.default != new.default:
        found.add("DEFAULT_CHANGED")
