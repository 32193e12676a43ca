"""The offsets of a standalone worker: a file with a line of JSON for each source partition, written as a whole."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from penstock.connect.errors import ConnectError
from penstock.connect.tasks.offsets import Send, partition_text, place_text

_OF_JAVA: Final = b"\xac\xed"


class FileOffsets:
    """`{"key":["connector",{partition}],"value":{offset}}` by line. `at` gives all threads of a process the same one."""

    _all: ClassVar[dict[str, FileOffsets]] = {}
    _all_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._places: dict[tuple[str, str], tuple[str, str]] | None = None  # spelled partition, offset

    @classmethod
    def at(cls, path: str) -> FileOffsets:
        place = os.path.abspath(path)
        with cls._all_lock:
            if place not in cls._all:
                cls._all[place] = cls(place)
            return cls._all[place]

    def load(self, connector: str) -> dict[str, dict[str, Any]]:
        with self._lock:
            return {
                partition: json.loads(place)
                for (name, partition), (_, place) in self._read().items()
                if name == connector
            }

    def write(self, connector: str, offsets: Mapping[str, str | None], send: Send) -> None:
        """When it returns, the file has them."""
        with self._lock:
            places = dict(self._read())
            for partition, place in offsets.items():
                if place is None:
                    places.pop((connector, partition), None)
                else:
                    places[connector, partition] = (
                        places.get((connector, partition), (partition, ""))[0],
                        place,
                    )
            lines = [
                f'{{"key":[{json.dumps(name, ensure_ascii=False)},{spelled}],"value":{place}}}\n'
                for (name, _), (spelled, place) in places.items()
            ]
            self._replace("".join(lines))
            self._places = places

    def spell(self, connector: str, partition: Mapping[str, Any]) -> str:
        return partition_text(partition)

    def _read(self) -> dict[tuple[str, str], tuple[str, str]]:
        if self._places is None:
            self._places = self._parse()
        return self._places

    def _parse(self) -> dict[tuple[str, str], tuple[str, str]]:
        try:
            with open(self.path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConnectError(f"offsets cannot be read from {self.path}: {error.strerror}") from None
        if data.startswith(_OF_JAVA):
            raise ConnectError(
                f"{self.path} was written by Kafka's standalone worker; name another file in offset.storage.file.filename"
            )
        places = {}
        try:
            for line in data.decode().splitlines():
                if line.strip():
                    entry = json.loads(line)
                    name, partition = entry["key"]
                    places[name, partition_text(partition)] = (
                        place_text(partition),
                        place_text(entry["value"]),
                    )
        except (ValueError, KeyError, TypeError):
            raise ConnectError(f"{self.path} is not a file of offsets") from None
        return places

    def _replace(self, text: str) -> None:
        try:
            number, path = tempfile.mkstemp(prefix=".offsets-", dir=os.path.dirname(self.path) or ".")
            try:
                with open(number, "w", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(path, self.path)
            except BaseException:
                os.unlink(path)
                raise
        except OSError as error:
            raise ConnectError(f"offsets cannot be written to {self.path}: {error.strerror}") from None
