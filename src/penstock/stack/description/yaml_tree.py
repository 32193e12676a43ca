"""A YAML text as a tree that remembers lines."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import yaml

from penstock.client.errors import UserError, reason

MAX_BYTES = 1 << 20
MERGE_TAG = "tag:yaml.org,2002:merge"
NULL_TAG = "tag:yaml.org,2002:null"


class Mistake(NamedTuple):
    line: int
    text: str


class BadDescription(UserError):
    """A file with mistakes. One line for each: `penstock.yaml:12: …`."""

    def __init__(self, path: Path, mistakes: list[Mistake]) -> None:
        self.mistakes = sorted(set(mistakes))
        lines = [f"{path}:{line}: {text}" for line, text in self.mistakes]
        count = "a mistake" if len(lines) == 1 else f"{len(lines)} mistakes"
        super().__init__(f"{path.name} has {count}, and nothing was started:\n" + "\n".join(lines))


class Findings:
    """Mistakes as they are found."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def add(self, line: int, text: str) -> None:
        self.mistakes.append(Mistake(line, text))


def read_tree(path: Path) -> yaml.Node | None:
    """None for an empty file; UserError for one that cannot be read, BadDescription for one that is no YAML."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"cannot read {path}: {reason(error)}") from None
    if len(data) > MAX_BYTES:
        raise UserError(f"{path} is larger than {MAX_BYTES:,} bytes: it does not describe a stack")
    try:
        return yaml.compose(data.decode(), Loader=yaml.SafeLoader)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadDescription(path, [Mistake(line, "this is not UTF-8")]) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        raise BadDescription(path, [Mistake(line, _told(error))]) from None
    except yaml.YAMLError as error:
        raise BadDescription(path, [Mistake(1, " ".join(str(error).split()))]) from None
    except RecursionError:
        raise UserError(f"{path} is nested too deeply: it does not describe a stack") from None


def _told(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "this is no YAML"
    if "\\t" in problem or "'\t'" in problem:
        problem += " (YAML takes blanks for indentation, no tabs)"
    return f"{problem} ({error.context})" if error.context else problem


def line_of(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == NULL_TAG


class Pair(NamedTuple):
    name: str
    line: int
    node: yaml.Node


def pairs_of(node: yaml.MappingNode, found: Findings) -> list[Pair]:
    """The entries of a mapping in their order. What `<<` brings counts less than what is there."""
    own: dict[str, Pair] = {}
    merged: list[yaml.Node] = []
    for key, value in node.value:
        if key.tag == MERGE_TAG:
            merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
        elif not isinstance(key, yaml.ScalarNode):
            found.add(line_of(key), "a name was expected here")
        elif key.value in own:
            first = own[key.value].line
            found.add(line_of(key), f"`{key.value}` is here twice; the first one is on line {first}")
        else:
            own[key.value] = Pair(key.value, line_of(key), value)
    for source in merged:
        if not isinstance(source, yaml.MappingNode) or source is node:
            found.add(line_of(source), "`<<` takes names with values")
            continue
        for key, value in source.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != MERGE_TAG:
                own.setdefault(key.value, Pair(key.value, line_of(key), value))
    return list(own.values())
