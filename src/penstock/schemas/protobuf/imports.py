"""What a file imports, and what that imports: read and linked, each after those that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from google.protobuf.descriptor_pool import DescriptorPool

from penstock.schemas.model import InvalidSchema, Referred
from penstock.schemas.protobuf.describing import Described, describe
from penstock.schemas.protobuf.elements import File
from penstock.schemas.protobuf.linking import Linked, link
from penstock.schemas.protobuf.options import OptionFilling
from penstock.schemas.protobuf.tokens import shortened
from penstock.schemas.protobuf.well_known import DESCRIPTOR, PATHS, well_known

MAX_ALL_CHARACTERS: Final = 16 << 20
"""Of all texts that a schema is made of."""


class Imports:
    """Of one schema. `texts` has the references by the paths under which they are imported."""

    def __init__(self, texts: Mapping[str, Referred], read: Callable[[str], File]) -> None:
        self._texts = texts
        self._read = read
        self._characters = 0
        self.files: dict[str, Linked] = {}
        """By path; each comes after those that it imports."""

    def load(self, paths: Iterable[str]) -> dict[str, Linked]:
        """What `paths` name. InvalidSchema: not there, or in a circle."""
        wanted = list(dict.fromkeys(paths))
        for path in wanted:
            self._load(path)
        return {path: self.files[path] for path in wanted}

    def _load(self, path: str) -> None:
        """Without recursion: a chain of imports may be long."""
        opened: dict[str, Described] = {}
        waiting = [("", path)]  # who imports it, and what
        while waiting:
            by, path = waiting[-1]
            if path in self.files:
                waiting.pop()
                continue
            if path in opened:  # all that it imports is there now
                self._link(path, opened[path])
                waiting.pop()
                continue
            if path not in self._texts and path in PATHS:
                self.add_well_known(path)
                waiting.pop()
                continue
            described = opened[path] = self._described(by, path)
            for needed in described.proto.dependency:
                if needed in opened and needed not in self.files:  # it is one that led here
                    raise InvalidSchema(
                        f"imports go in a circle: {shortened(path)} imports {shortened(needed)}"
                    )
                waiting.append((path, needed))

    def add_well_known(self, path: str) -> None:
        if path not in self.files:
            found = well_known(path)
            for needed in found.proto.dependency:
                self.add_well_known(needed)
            self.files[path] = found

    def _described(self, importer: str, path: str) -> Described:
        if path not in self._texts:
            by = shortened(importer) if importer else "the schema"
            raise InvalidSchema(f"{by} imports {shortened(path)}, which is not among the references")
        text = self._texts[path].text
        self._characters += len(text)
        if self._characters > MAX_ALL_CHARACTERS:
            raise InvalidSchema(f"a schema and its references have at most {MAX_ALL_CHARACTERS:,} characters")
        try:
            return describe(self._read(text), path)
        except InvalidSchema as e:
            raise InvalidSchema(f"{shortened(path)}: {e}") from None

    def _link(self, path: str, described: Described) -> None:
        try:
            linked, names = link(
                described.proto, {each: self.files[each] for each in described.proto.dependency}
            )
            filling = OptionFilling(names)  # its extensions are left alone: they change no values
            for pending in described.pending:
                filling.fill(pending)
        except InvalidSchema as e:
            raise InvalidSchema(f"{shortened(path)}: {e}") from None
        self.files[path] = linked

    def pool(self, *, with_descriptor: bool = False) -> DescriptorPool:
        """A new one with all files. InvalidSchema."""
        if with_descriptor:
            self.add_well_known(DESCRIPTOR)
        pool = DescriptorPool()
        for path, file in self.files.items():
            add(pool, file.proto.SerializeToString(), shortened(path))
        return pool


def add(pool: DescriptorPool, serialized: bytes, name: str) -> None:
    try:
        pool.AddSerializedFile(serialized)
    except (TypeError, ValueError) as e:
        reason = " ".join(str(e).split()).removeprefix("Couldn't build proto file into descriptor pool: ")
        raise InvalidSchema(f"{name}: {reason[:300]}") from None
