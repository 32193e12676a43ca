"""A YAML file in which each value knows its line ◇, so that a mistake is told with its place.

Values are texts, as they stand there; `${env:NAME}` in one is replaced by what the environment has. Whoever reads a mapping asks
for each name that may be in it, and calls `end`: what nobody asked for is a mistake, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

import yaml

from penstock.client.errors import UserError, one_line

_VARIABLE: Final = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")
MAX_BYTES: Final = 4 << 20


class Mistake(UserError):
    """With the file and the line in front."""


class Place:
    """Where something stands in a file."""

    def __init__(self, file: str, line: int, path: str) -> None:
        self.file, self.line, self.path = file, line, path

    def mistake(self, message: str) -> Mistake:
        named = f"{self.path}: " if self.path else ""
        return Mistake(f"{self.file}, line {self.line}: {named}{message}")


class Section:
    """A mapping of the file."""

    def __init__(self, node: yaml.Node, place: Place, environment: Mapping[str, str]) -> None:
        self.place = place
        self._environment = environment
        if not isinstance(node, yaml.MappingNode):
            raise place.mistake("must be a mapping: lines of `name: value`")
        self._nodes: dict[str, tuple[yaml.Node, int]] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise Place(place.file, line, place.path).mistake("a name must be a plain word")
            if key.value in self._nodes:
                raise Place(place.file, line, place.path).mistake(f"{key.value} is given twice")
            self._nodes[key.value] = value, line
        self._asked: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    def place_of(self, name: str) -> Place:
        line = self._nodes[name][1] if name in self._nodes else self.place.line
        return Place(self.place.file, line, f"{self.place.path}.{name}" if self.place.path else name)

    def text(self, name: str, default: str = "") -> str:
        node = self._take(name)
        return default if node is None else self._text(node, self.place_of(name))

    def required(self, name: str) -> str:
        found = self.text(name)
        if not found:
            raise self.place.mistake(f"{name} must be given")
        return found

    def one_of(self, name: str, known: tuple[str, ...], default: str) -> str:
        found = self.text(name, default)
        if found not in known:
            raise self.place_of(name).mistake(f"'{found}' is none of {', '.join(known)}{_hint(found, known)}")
        return found

    def number(self, name: str, default: int, *, low: int, high: int) -> int:
        text = self.text(name)
        if not text:
            return default
        try:
            found = int(text)
        except ValueError:
            found = low - 1
        if not low <= found <= high:
            raise self.place_of(name).mistake(
                f"must be a number from {low} to {high}, and not '{one_line(text)}'"
            )
        return found

    def flag(self, name: str, default: bool) -> bool:
        text = self.text(name).lower()
        if not text:
            return default
        if text not in _TRUE + _FALSE:
            raise self.place_of(name).mistake(f"must be true or false, and not '{one_line(text)}'")
        return text in _TRUE

    def texts(self, name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A list, or one text in place of a list of one."""
        node = self._take(name)
        if node is None:
            return default
        place = self.place_of(name)
        if isinstance(node, yaml.ScalarNode):
            found = self._text(node, place)
            return (found,) if found else ()
        return tuple(self._text(each, _at(place, each)) for each in self._items(node, place))

    def section(self, name: str) -> Section | None:
        node = self._take(name)
        return None if node is None else Section(node, self.place_of(name), self._environment)

    def sections(self, name: str) -> list[Section]:
        """A list of mappings."""
        node = self._take(name)
        if node is None:
            return []
        place = self.place_of(name)
        return [
            Section(each, _at(place, each, f"{place.path}[{number}]"), self._environment)
            for number, each in enumerate(self._items(node, place))
        ]

    def pairs(self) -> Iterator[tuple[str, str]]:
        """All of it, as names and texts."""
        for name in self._nodes:
            yield name, self.text(name)

    def names(self) -> list[str]:
        return list(self._nodes)

    def end(self) -> None:
        """Mistake for what was not asked for."""
        for name in self._nodes:
            if name not in self._asked:
                raise self.place_of(name).mistake(
                    f"there is no such setting{_hint(name, tuple(self._asked))}"
                )

    def _take(self, name: str) -> yaml.Node | None:
        self._asked.add(name)
        if name not in self._nodes:
            return None
        node = self._nodes[name][0]
        return None if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null") else node

    def _items(self, node: yaml.Node, place: Place) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode):
            raise place.mistake("must be a list: lines that begin with `- `")
        return list(node.value)

    def _text(self, node: yaml.Node, place: Place) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise place.mistake("must be one value")

        def value(found: re.Match[str]) -> str:
            if found[1] not in self._environment:
                raise place.mistake(f"the environment has no variable {found[1]}")
            return self._environment[found[1]]

        return _VARIABLE.sub(value, node.value).strip()


def parse(text: str, *, file: str, environment: Mapping[str, str]) -> Section:
    """Mistake where it is not YAML."""
    if len(text) > MAX_BYTES:
        raise Mistake(f"{file}: is larger than {MAX_BYTES >> 20} MiB")
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise Place(file, line, "").mistake(one_line(error.problem or "it is not YAML")) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Mistake(f"{file}: is not YAML: {one_line(error)}") from None
    if node is None:
        raise Mistake(f"{file}: is empty")
    return Section(node, Place(file, node.start_mark.line + 1, ""), environment)


def _at(place: Place, node: yaml.Node, path: str | None = None) -> Place:
    return Place(place.file, node.start_mark.line + 1, place.path if path is None else path)


def _hint(word: str, known: tuple[str, ...]) -> str:
    near = get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""
