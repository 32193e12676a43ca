"""Schemas parsed: in threads, since that takes time, and kept for a while.

Texts above LARGE_CHARACTERS wait in a queue of their own, so that they hold up no small one.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, TypeVar

from penstock.registry.refusals import InvalidText
from penstock.schemas import parsing
from penstock.schemas.model import InvalidSchema, Referred, Schema, SchemaReference

T = TypeVar("T")

THREADS: Final = 4
LARGE_CHARACTERS: Final = 64 << 10
MAX_KEPT: Final = 1000
MAX_KEPT_CHARACTERS: Final = 8 << 20
MAX_WAITING: Final = 256
Texts = Mapping[str, Referred]


class Source(NamedTuple):
    """A text with all that it needs to be parsed."""

    kind: str
    text: str
    references: tuple[SchemaReference, ...]
    texts: Texts

    @property
    def size(self) -> int:
        return len(self.text) + sum(len(each.text) for each in self.texts.values())

    @property
    def key(self) -> Hashable:
        return self.kind, self.text, self.references, tuple(self.texts.items())


class ParsedSchemas:
    def __init__(
        self,
        parse: Callable[[str, str, Sequence[SchemaReference], Texts], Schema] = parsing.parse,
    ) -> None:
        self._parse = parse
        self._quick = ThreadPoolExecutor(THREADS, "penstock-schemas")
        self._slow = ThreadPoolExecutor(THREADS, "penstock-large-schemas")
        self._waiting = asyncio.Semaphore(MAX_WAITING)
        self._kept: OrderedDict[Hashable, tuple[Schema, int]] = OrderedDict()
        self._kept_characters = 0
        self._lock = threading.Lock()

    def close(self) -> None:
        for pool in (self._quick, self._slow):
            pool.shutdown(wait=False, cancel_futures=True)

    async def run(self, call: Callable[[], T], size: int) -> T:
        """What parses or compares, in a thread. `size`: how many characters it is about."""
        pool = self._slow if size > LARGE_CHARACTERS else self._quick
        async with self._waiting:
            return await asyncio.get_running_loop().run_in_executor(pool, call)

    async def parsed(self, source: Source, *, normalize: bool) -> Schema:
        known = self._known((source.key, normalize))
        if known is not None:
            return known
        return await self.run(lambda: self.parsed_now(source, normalize=normalize), source.size)

    def parsed_now(self, source: Source, *, normalize: bool = False) -> Schema:
        """In a thread. InvalidText."""
        key = source.key
        found = self._known((key, normalize)) or self._known((key, False))
        if found is None:
            try:
                found = self._parse(source.kind, source.text, source.references, source.texts)
            except InvalidSchema as error:
                raise InvalidText(f"Invalid schema of type {source.kind}, details: {error}") from None
            except RecursionError:
                raise InvalidText(
                    f"Invalid schema of type {source.kind}, details: it is nested too deeply"
                ) from None
            self._keep((key, False), found, source.size)
            normalized = False
        else:
            normalized = self._known((key, normalize)) is not None
        if normalize and not normalized:
            found = found.normalized()
            self._keep((key, True), found, source.size)
        return found

    @staticmethod
    def check_new_now(schema: Schema) -> None:
        """In a thread. InvalidText for one that may stay where it is, but not be registered anew."""
        try:
            parsing.check_new(schema)
        except InvalidSchema as error:
            raise InvalidText(f"Invalid schema of type {schema.kind}, details: {error}") from None

    def _known(self, key: Hashable) -> Schema | None:
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            self._kept.move_to_end(key)
            return kept[0]

    def _keep(self, key: Hashable, schema: Schema, size: int) -> None:
        with self._lock:
            if key in self._kept or size > MAX_KEPT_CHARACTERS // 4:
                return
            self._kept[key] = (schema, size)
            self._kept_characters += size
            while len(self._kept) > MAX_KEPT or self._kept_characters > MAX_KEPT_CHARACTERS:
                _, (_, dropped) = self._kept.popitem(last=False)
                self._kept_characters -= dropped
