"""What a value of the file may be. Each form reads a value, tells what is wrong with it, and says itself as JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Protocol

import yaml

from penstock.stack.description.yaml_tree import Findings, is_null, line_of, pairs_of

WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
NAMED_AT_MOST = 12


@dataclass(frozen=True)
class Given:
    """A value and its line. Its own lines are remembered by what is below it."""

    value: Any
    line: int


class Form(Protocol):
    def read(self, node: yaml.Node, name: str, found: Findings) -> Given | None:
        """None where it cannot be used; `found` knows why then. `name` is what it is called in a sentence."""

    def schema(self) -> dict[str, Any]: ...


class Text:
    """One word or line. Numbers are taken as they are written."""

    def __init__(
        self, what: str = "a text", *, choices: Sequence[str] = (), pattern: str | None = None
    ) -> None:
        self._what, self._choices = what, choices
        self._pattern = re.compile(pattern) if pattern else None

    def read(self, node: yaml.Node, name: str, found: Findings) -> Given | None:
        if not isinstance(node, yaml.ScalarNode) or is_null(node) or not node.value.strip():
            found.add(line_of(node), f"`{name}` is {self._what}, and here is {_seen(node)}")
            return None
        value = node.value.strip()
        if self._choices:
            upper = {one.upper(): one for one in self._choices}
            if value.upper() not in upper:
                hint = nearest(value.upper(), list(upper))
                told = f"; did you mean {upper[hint]}?" if hint else ""
                found.add(
                    line_of(node), f"`{name}` is one of {', '.join(self._choices)}, not '{value}'{told}"
                )
                return None
            value = upper[value.upper()]
        if self._pattern is not None and not self._pattern.fullmatch(value):
            found.add(line_of(node), f"`{name}` is {self._what}, not '{value}'")
            return None
        return Given(value, line_of(node))

    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": ["string", "number"] if not self._choices else "string"}
        if self._choices:
            found["enum"] = list(self._choices)
        if self._pattern is not None:
            found = {"type": "string", "pattern": f"^(?:{self._pattern.pattern})$"}
        return found


class Whole:
    def __init__(self, least: int, most: int, *, choices: Sequence[int] = ()) -> None:
        self._least, self._most, self._choices = least, most, choices

    def read(self, node: yaml.Node, name: str, found: Findings) -> Given | None:
        text = node.value if isinstance(node, yaml.ScalarNode) else ""
        if isinstance(node, yaml.ScalarNode) and WHOLE.fullmatch(text):
            value = int(text)
            if (not self._choices or value in self._choices) and self._least <= value <= self._most:
                return Given(value, line_of(node))
        if self._choices:
            bounds = " or ".join(map(str, self._choices))
        else:
            bounds = f"a whole number from {self._least} to {self._most}"
        found.add(line_of(node), f"`{name}` is {bounds}, and here is {_seen(node)}")
        return None

    def schema(self) -> dict[str, Any]:
        if self._choices:
            return {"type": "integer", "enum": list(self._choices)}
        return {"type": "integer", "minimum": self._least, "maximum": self._most}


class YesNo:
    def read(self, node: yaml.Node, name: str, found: Findings) -> Given | None:
        if isinstance(node, yaml.ScalarNode) and node.value in ("true", "false"):
            return Given(node.value == "true", line_of(node))
        found.add(line_of(node), f"`{name}` is true or false, and here is {_seen(node)}")
        return None

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


class Options:
    """Names and values as in a properties file. A list is written with commas. `check` tells what is wrong with one."""

    def __init__(
        self,
        check: Callable[[str, str], str | None] | None = None,
        *,
        known: Callable[[], Mapping[str, str]] = dict,
        is_closed: bool = False,
    ) -> None:
        self._check, self._known, self._is_closed = check, known, is_closed

    def read(self, node: yaml.Node, name: str, found: Findings) -> Given | None:
        if is_null(node):
            return Given({}, line_of(node))
        if not isinstance(node, yaml.MappingNode):
            found.add(line_of(node), f"`{name}` has names with values, and here is {_seen(node)}")
            return None
        values: dict[str, Given] = {}
        for option, line, value in pairs_of(node, found):
            text = _option_text(value)
            if text is None:
                found.add(line_of(value), f"`{option}` takes a value, and here is {_seen(value)}")
                continue
            if self._check is not None and (problem := self._check(option, text)) is not None:
                found.add(line, problem)
                continue
            values[option] = Given(text, line)
        return Given(values, line_of(node))

    def schema(self) -> dict[str, Any]:
        value = {"type": ["string", "number", "boolean", "array"], "items": {"type": ["string", "number"]}}
        known = {name: {**value, "description": doc} for name, doc in self._known().items()}
        found: dict[str, Any] = {"type": ["object", "null"]}
        if known:
            found["properties"] = known
        found["additionalProperties"] = False if self._is_closed else value
        return found


class Listing:
    def __init__(self, of: Form) -> None:
        self.of = of

    def read(self, node: yaml.Node, name: str, found: Findings) -> Given | None:
        if not isinstance(node, yaml.SequenceNode):
            found.add(line_of(node), f"`{name}` is a list, and here is {_seen(node)}")
            return None
        read = [self.of.read(each, name, found) for each in node.value]
        return Given([one for one in read if one is not None], line_of(node))

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.of.schema()}


class Named:
    """Things by their names: of each the same form. `check` tells what is wrong with a name."""

    def __init__(self, of: Form, check: Callable[[str], str | None] | None = None) -> None:
        self.of, self._check = of, check

    def read(self, node: yaml.Node, name: str, found: Findings) -> Given | None:
        if is_null(node):
            return Given({}, line_of(node))
        if not isinstance(node, yaml.MappingNode):
            found.add(line_of(node), f"`{name}` has names, and here is {_seen(node)}")
            return None
        values: dict[str, Given] = {}
        for each, line, value in pairs_of(node, found):
            if self._check is not None and (problem := self._check(each)) is not None:
                found.add(line, problem)
                continue
            read = self.of.read(value, each, found)
            if read is not None:
                values[each] = Given(read.value, line)
        return Given(values, line_of(node))

    def schema(self) -> dict[str, Any]:
        return {"type": ["object", "null"], "additionalProperties": self.of.schema()}


@dataclass(frozen=True)
class Entry:
    """A row of a section's table."""

    name: str
    form: Form
    doc: str
    default: str = ""
    """For the page: what holds where it is not there."""


@dataclass(frozen=True)
class Section:
    """Names of a table. `is_switch`: nothing or `true` is all of its defaults, and `false` is as if it were not there."""

    entries: tuple[Entry, ...]
    is_switch: bool = False
    is_open: bool = False
    """Names that begin with `x-` are nobody's: for YAML's anchors."""
    by_name: dict[str, Entry] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.by_name.update({entry.name: entry for entry in self.entries})

    def read(self, node: yaml.Node, name: str, found: Findings) -> Given | None:
        if is_null(node):
            return Given({}, line_of(node))
        if self.is_switch and isinstance(node, yaml.ScalarNode) and node.value in ("true", "false"):
            return Given({}, line_of(node)) if node.value == "true" else None
        if not isinstance(node, yaml.MappingNode):
            known = ", ".join(entry.name for entry in self.entries)
            what = f"`{name}` has names below it" if name else "the file has names"
            found.add(line_of(node), f"{what} ({known}), and here is {_seen(node)}")
            return None
        values: dict[str, Given] = {}
        for each, line, value in pairs_of(node, found):
            entry = self.by_name.get(each)
            if entry is not None:
                read = entry.form.read(value, each, found)
                if read is not None:
                    values[each] = Given(read.value, line)
            elif not (self.is_open and each.startswith("x-")):
                found.add(line, self._unknown(each, name))
        return Given(values, line_of(node))

    def _unknown(self, word: str, name: str) -> str:
        where = f"below `{name}`" if name else "here"
        hint = nearest(word, list(self.by_name))
        if hint is not None:
            return f"there is no `{word}` {where}; did you mean `{hint}`?"
        known = list(self.by_name)
        more = ", …" if len(known) > NAMED_AT_MOST else ""
        return f"there is no `{word}` {where}: there are {', '.join(known[:NAMED_AT_MOST])}{more}"

    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "type": ["object", "null", "boolean"] if self.is_switch else ["object", "null"],
            "properties": {
                entry.name: {"description": entry.doc, **entry.form.schema()} for entry in self.entries
            },
            "additionalProperties": False,
        }
        if self.is_open:
            found["patternProperties"] = {"^x-": {}}
        return found


def nearest(word: str, known: Sequence[str]) -> str | None:
    lowered = {one.lower(): one for one in known}
    matches = get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.6)
    return lowered[matches[0]] if matches else None


def _option_text(node: yaml.Node) -> str | None:
    if isinstance(node, yaml.ScalarNode):
        return None if is_null(node) else str(node.value)
    if isinstance(node, yaml.SequenceNode):
        items = [_option_text(each) if isinstance(each, yaml.ScalarNode) else None for each in node.value]
        return None if None in items else ",".join(item for item in items if item is not None)
    return None


def _seen(node: yaml.Node) -> str:
    if is_null(node):
        return "nothing"
    if isinstance(node, yaml.ScalarNode):
        text = str(node.value)
        return f"'{text[:60]}…'" if len(text) > 60 else f"'{text}'"
    return "a list" if isinstance(node, yaml.SequenceNode) else "names with values"
