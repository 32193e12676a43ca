"""Conditions on JSON ◇: `$.order.total > 100 and $.items[*].sku == "A-1"`, read from text and asked of a document.

    expression   or | and | not | ( ) over comparisons, in the usual order; `||`, `&&` and `!` are the same
    comparison   PATH, PATH OPERATOR LITERAL; OPERATOR is == != < <= > >= contains matches
    path         $ and then .name, ["name"], [2], [*]; the `$.` in front may be left out
    literal      a number, "text", 'text', true, false, null

A path alone asks whether there is something, null included. With `[*]` one entry is enough. What is of another kind
than the literal is not equal, not less and not greater; `!=` holds for it, but never for what is not there. `matches`
is a regular expression of RE2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from penstock.client.errors import UserError
from penstock.console.messages.patterns import Pattern, compiled

MAX_TEXT: Final = 2_000
MAX_COMPARISONS: Final = 20
MAX_NESTING: Final = 50
Step = str | int | None
"""A name, a place in an array, or None for each entry of one."""
Literal = str | int | float | bool | None

EXISTS, EQUAL, UNEQUAL, LESS, AT_MOST, GREATER, AT_LEAST, CONTAINS, MATCHES = (
    "", "==", "!=", "<", "<=", ">", ">=", "contains", "matches",
)  # fmt: skip
_OPERATORS: Final = {
    "==": EQUAL, "=": EQUAL, "!=": UNEQUAL, "<>": UNEQUAL, "<": LESS, "<=": AT_MOST, ">": GREATER, ">=": AT_LEAST,
    "contains": CONTAINS, "matches": MATCHES, "=~": MATCHES,
}  # fmt: skip
_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<number>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w$])
    | (?P<operator>==|!=|<>|<=|>=|=~|=|<|>)
    | (?P<join>&&|\|\||!)
    | (?P<paren>[()])
    | (?P<path>\$(?:\.[\w$-]+|\[\s*(?:\*|\d+|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*\])*)
    | (?P<word>[A-Za-z_][\w$-]*(?:\.[\w$-]+|\[\s*(?:\*|\d+|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*\])*)
    )""",
    re.VERBOSE | re.DOTALL,
)
_STEP: Final = re.compile(
    r"""\.?([\w$-]+)|\[\s*(?:(\*)|(\d+)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))\s*\]""", re.DOTALL
)
_EXAMPLE: Final = 'write for example $.order.total > 100 or $.state == "paid"'


@dataclass(frozen=True)
class Comparison:
    path: tuple[Step, ...]
    operator: str = EXISTS
    literal: Literal = None

    def pattern(self) -> Pattern:
        return compiled(str(self.literal))


@dataclass(frozen=True)
class Not:
    inner: Expression


@dataclass(frozen=True)
class Every:
    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Some:
    parts: tuple[Expression, ...]


Expression = Comparison | Not | Every | Some


def parse(text: str) -> Expression:
    """UserError for what is no expression."""
    if len(text) > MAX_TEXT:
        raise UserError(f"a condition on JSON has {MAX_TEXT:,} characters at most")
    return _Parser(text).whole()


def holds(expression: Expression, document: Any) -> bool:
    """Of a document as `json.loads` gives it."""
    if isinstance(expression, Not):
        return not holds(expression.inner, document)
    if isinstance(expression, Every):
        return all(holds(part, document) for part in expression.parts)
    if isinstance(expression, Some):
        return any(holds(part, document) for part in expression.parts)
    return any(_compares(expression, found) for found in found_at(expression.path, document))


def found_at(path: tuple[Step, ...], document: Any) -> Iterator[Any]:
    if not path:
        yield document
        return
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        if isinstance(document, dict) and step in document:
            yield from found_at(rest, document[step])
    elif isinstance(document, list):
        if step is None:
            for each in document:
                yield from found_at(rest, each)
        elif step < len(document):
            yield from found_at(rest, document[step])


def _compares(comparison: Comparison, found: Any) -> bool:
    operator, literal = comparison.operator, comparison.literal
    if operator == EXISTS:
        return True
    if operator in (CONTAINS, MATCHES):
        if not isinstance(found, str):
            return False
        return str(literal) in found if operator == CONTAINS else comparison.pattern().is_in(found)
    alike = _kind(found) == _kind(literal)
    if operator == EQUAL:
        return bool(alike and found == literal)
    if operator == UNEQUAL:
        return not (alike and found == literal)
    if not alike or isinstance(literal, bool) or literal is None:
        return False
    left: Any = found.encode("utf-8", "replace") if isinstance(found, str) else found
    right: Any = literal.encode("utf-8", "replace") if isinstance(literal, str) else literal
    if operator in (LESS, AT_MOST):
        return bool(left < right or (operator == AT_MOST and left == right))
    return bool(left > right or (operator == AT_LEAST and left == right))


def _kind(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "null" if value is None else "bool"
    return "number" if isinstance(value, int | float) else type(value).__name__


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._at = 0
        self._comparisons = 0
        self._depth = 0

    def whole(self) -> Expression:
        if not self._tokens:
            raise UserError(f"a condition on JSON is empty; {_EXAMPLE}")
        found = self._any()
        if self._at < len(self._tokens):
            raise self._wrong()
        return found

    def _any(self) -> Expression:
        parts = [self._every()]
        while self._takes("||", "or"):
            parts.append(self._every())
        return parts[0] if len(parts) == 1 else Some(tuple(parts))

    def _every(self) -> Expression:
        parts = [self._not()]
        while self._takes("&&", "and"):
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def _not(self) -> Expression:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise UserError(f"a condition on JSON is nested more than {MAX_NESTING} deep")
        try:
            if self._takes("!", "not"):
                return Not(self._not())
            if self._takes("("):
                found = self._any()
                if not self._takes(")"):
                    raise self._wrong()
                return found
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Expression:
        kind, said, _ = self._peek()
        if kind not in ("path", "word"):
            raise self._wrong()
        self._at += 1
        self._comparisons += 1
        if self._comparisons > MAX_COMPARISONS:
            raise UserError(f"a condition on JSON has {MAX_COMPARISONS} comparisons at most")
        path = _path(said)
        kind, said, _ = self._peek()
        operator = _OPERATORS.get(said.lower()) if kind in ("operator", "word") else None
        if operator is None:
            return Comparison(path)
        self._at += 1
        literal = self._literal(as_it_is=operator == MATCHES)
        if operator in (CONTAINS, MATCHES) and not isinstance(literal, str):
            raise UserError(f'after {said} comes a text in quotes: $.name {said} "abc"')
        if operator == MATCHES:
            compiled(str(literal))
        return Comparison(path, operator, literal)

    def _literal(self, *, as_it_is: bool = False) -> Literal:
        """`as_it_is`: a pattern has backslashes of its own."""
        kind, said, _ = self._peek()
        words: dict[str, Literal] = {"true": True, "false": False, "null": None}
        if kind == "text":
            found: Literal = said[1:-1].replace("\\" + said[0], said[0]) if as_it_is else _unquoted(said)
        elif kind == "number":
            found = json.loads(said)
        elif kind == "word" and said in words:
            found = words[said]
        elif kind == "word":
            raise UserError(f'text stands in quotes: "{said}" instead of {said}')
        else:
            raise self._wrong()
        self._at += 1
        return found

    def _peek(self) -> tuple[str, str, int]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "", len(self._text))

    def _takes(self, *words: str) -> bool:
        kind, said, _ = self._peek()
        if kind in ("join", "paren", "word") and said.lower() in words:
            self._at += 1
            return True
        return False

    def _wrong(self) -> UserError:
        _, _, at = self._peek()
        rest = self._text[at : at + 30].strip()
        where = f"at '{rest}'" if rest else "at its end"
        return UserError(f"the condition on JSON cannot be read {where}; {_EXAMPLE}")


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            rest = text[at : at + 30].strip()
            raise UserError(f"the condition on JSON cannot be read at '{rest}'; {_EXAMPLE}")
        yield found.lastgroup, found[found.lastgroup], found.start(found.lastgroup)
        at = found.end()


def _path(text: str) -> tuple[Step, ...]:
    body = text.removeprefix("$") if text.startswith("$") else text
    steps: list[Step] = []
    for name, each, number, quoted in (found.groups() for found in _STEP.finditer(body)):
        if name is not None:
            steps.append(name)
        elif each is not None:
            steps.append(None)
        elif number is not None:
            steps.append(int(number))
        else:
            steps.append(_unquoted(quoted))
    return tuple(steps)


def _unquoted(text: str) -> str:
    body = text[1:-1]
    if text[0] == "'":
        body = body.replace("\\'", "'").replace('"', '\\"')
    try:
        found = json.loads(f'"{body}"', strict=False)
        found.encode()
        return str(found)
    except ValueError:
        raise UserError(
            f"the text {text[:40]} has an escape that JSON has not: a backslash is written \\\\"
        ) from None
