"""Pages of lists ◇: searched, sorted and cut out of the last look. 10,000 rows take some milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from penstock.console.clusters.model import GroupRow, TopicRow

R = TypeVar("R", TopicRow, GroupRow)

DEFAULT_PAGE_SIZE: Final = 25
MAX_PAGE_SIZE: Final = 200


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which rows, in which order. `search` is a part of the name, or several with blanks between them; upper and lower case
    are the same."""

    search: str = ""
    sort: str = "name"
    descending: bool = False
    page: int = 1
    page_size: int = DEFAULT_PAGE_SIZE
    internal: bool = False
    kind: str = ""
    """Of groups: the value of a GroupKind; empty for all. Of topics: "trouble" for those with something wrong."""


@dataclass(frozen=True, kw_only=True)
class Page(Generic[R]):
    rows: Sequence[R]
    total: int
    """Of those that were found."""
    page: int
    pages: int


TOPIC_SORTS: Final[Mapping[str, Callable[[TopicRow], Any]]] = {
    "name": lambda row: row.name,
    "partitions": lambda row: len(row.partitions),
    "replication": lambda row: row.replication_factor,
    "records": lambda row: row.records,
    "size": lambda row: row.size_bytes,
    "rate": lambda row: row.per_second,
    "state": lambda row: (row.offline, row.under_replicated),
}
GROUP_SORTS: Final[Mapping[str, Callable[[GroupRow], Any]]] = {
    "name": lambda row: row.name,
    "state": lambda row: row.state,
    "kind": lambda row: row.kind.value,
    "members": lambda row: row.members,
    "topics": lambda row: len(row.topics),
    "lag": lambda row: row.lag,
    "lag_s": lambda row: row.lag_s,
    "rate": lambda row: row.per_second,
}


def topics(rows: Iterable[TopicRow], wanted: Wanted, *, may_see: Callable[[str], bool]) -> Page[TopicRow]:
    """`rows` in order of their names."""
    words = wanted.search.lower().split()
    found = [
        row
        for row in rows
        if (wanted.internal or not row.is_internal)
        and (wanted.kind != "trouble" or row.offline or row.under_replicated)
        and _matches(row.name, words)
        and may_see(row.name)
    ]
    return _cut(found, TOPIC_SORTS, wanted)


def groups(rows: Iterable[GroupRow], wanted: Wanted, *, may_see: Callable[[str], bool]) -> Page[GroupRow]:
    """`rows` in order of their names."""
    words = wanted.search.lower().split()
    found = [
        row
        for row in rows
        if (not wanted.kind or row.kind.value == wanted.kind)
        and _matches(row.name, words)
        and may_see(row.name)
    ]
    return _cut(found, GROUP_SORTS, wanted)


def _matches(name: str, words: Sequence[str]) -> bool:
    if not words:
        return True
    lowered = name.lower()
    return all(word in lowered for word in words)


def _cut(found: list[R], sorts: Mapping[str, Callable[[R], Any]], wanted: Wanted) -> Page[R]:
    key = sorts.get(wanted.sort, sorts["name"])
    if wanted.sort in sorts and (wanted.sort != "name" or wanted.descending):
        # What is not known comes last, whichever way round.
        known = [row for row in found if key(row) is not None]
        unknown = [row for row in found if key(row) is None]
        found = sorted(known, key=key, reverse=wanted.descending) + unknown
    size = min(max(1, wanted.page_size), MAX_PAGE_SIZE)
    pages = max(1, -(-len(found) // size))
    page = min(max(1, wanted.page), pages)
    return Page(rows=found[(page - 1) * size : page * size], total=len(found), page=page, pages=pages)
