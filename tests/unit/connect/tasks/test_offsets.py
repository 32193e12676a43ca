"""Where sources keep how far they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.connect import ConnectError
from penstock.connect.tasks.clients import at_hand
from penstock.connect.tasks.offset_file import FileOffsets
from penstock.connect.tasks.offsets import TopicOffsets, partition_text, place_text
from penstock.connect.tasks.source_clients import SourceClients
from penstock.connect.tasks.source_offsets import SourceOffsets


def nothing(topic: str, key: bytes, value: bytes | None) -> None:
    raise AssertionError("nothing is to be sent")


class Memory:
    """A store whose records are those that were sent."""

    def __init__(self, kept: Mapping[str, dict[str, Any]] | None = None) -> None:
        self.kept = dict(kept or {})

    def load(self, connector: str) -> Mapping[str, dict[str, Any]]:
        return self.kept

    def spell(self, connector: str, partition: Mapping[str, Any]) -> str:
        return partition_text(partition)

    def write(self, connector: str, offsets: Mapping[str, str | None], send: Any) -> None:
        for partition, place in offsets.items():
            send("offsets", partition.encode(), None if place is None else place.encode())


def test_a_partition_is_the_same_whatever_the_order_of_its_fields() -> None:
    assert partition_text({"b": 1, "a": "ä"}) == partition_text({"a": "ä", "b": 1}) == '{"a":"ä","b":1}'


def test_offsets_are_json() -> None:
    assert place_text({"b": 1, "a": None}) == '{"b":1,"a":null}'
    with pytest.raises(ConnectError, match="JSON"):
        place_text({"a": object()})
    with pytest.raises(ConnectError, match="JSON"):
        place_text({"a": float("nan")})


def test_a_new_key_has_the_fields_in_the_connectors_order() -> None:
    store = TopicOffsets("offsets", {}, {})
    text = store.spell("c", {"b": 1, "a": 2})
    sent: list[Any] = []
    store.write("c", {text: '{"n":1}', '{"other":1}': None}, lambda *given: sent.append(given))
    assert sent == [
        ("offsets", b'["c",{"b":1,"a":2}]', b'{"n":1}'),
        ("offsets", b'["c",{"other":1}]', None),
    ]


def test_the_last_offset_that_was_seen_is_written_until_it_is_kept() -> None:
    offsets = SourceOffsets(Memory({'{"p":2}': {"n": 5}}), "c")
    assert offsets.offsets([{"p": 1}, {"p": 2}]) == [None, {"n": 5}]
    place = {"n": 1}
    offsets.see({"p": 1}, place)
    offsets.see({"p": 2}, {"n": 6})
    offsets.see(None, {"n": 9})
    offsets.see({"p": 1}, {"n": 2})
    offsets.settle()
    place["n"] = 77  # a connector may use an object again
    sent: list[Any] = []
    written = offsets.write(lambda *given: sent.append(given))
    assert written == {'{"p":1}': '{"n":2}', '{"p":2}': '{"n":6}'}
    offsets.see({"p": 1}, {"n": 3})
    offsets.settle()
    offsets.forget(written)
    assert offsets.write(lambda *given: None) == {'{"p":1}': '{"n":3}'}
    assert offsets.offset({"p": 2}) == {"n": 6}


def test_an_offset_of_none_takes_it_away() -> None:
    offsets = SourceOffsets(Memory({'{"p":1}': {"n": 5}}), "c")
    offsets.see({"p": 1}, None)
    offsets.settle()
    written = offsets.write(lambda *given: None)
    assert written == {'{"p":1}': None}
    offsets.forget(written)
    assert offsets.offset({"p": 1}) is None


class Delivering:
    """A writer whose deliveries the test decides about."""

    def __init__(self) -> None:
        self.is_delivered = True
        self.log: list[Any] = []

    def flush(self, timeout_s: float) -> bool:
        self.log.append("flush")
        return self.is_delivered

    def send(self, topic: str, key: bytes, value: bytes | None) -> None:
        self.log.append(value)

    def begin(self) -> None:
        self.log.append("begin")

    def commit(self) -> None:
        self.log.append("commit")


def clients(writer: Delivering, *, is_transactional: bool) -> SourceClients:
    made = SourceClients.__new__(SourceClients)
    made.store = Memory()
    made.writer = made._offsets_writer = writer  # type: ignore[assignment]
    made._is_transactional = is_transactional
    return made


def test_no_offset_is_written_before_what_stands_before_it_is_delivered() -> None:
    writer = Delivering()
    offsets = SourceOffsets(Memory(), "c")
    offsets.see({"p": 1}, {"n": 1})
    offsets.settle()
    writer.is_delivered = False
    assert not clients(writer, is_transactional=False).keep(offsets, 1)
    assert writer.log == ["flush"]
    writer.is_delivered = True
    assert clients(writer, is_transactional=False).keep(offsets, 1)
    assert writer.log == ["flush", "flush", b'{"n":1}', "flush"]
    assert not offsets.has_news


def test_with_exactly_once_they_are_in_the_transaction() -> None:
    writer = Delivering()
    offsets = SourceOffsets(Memory(), "c")
    offsets.see({"p": 1}, {"n": 1})
    offsets.settle()
    assert clients(writer, is_transactional=True).keep(offsets, 0)
    assert writer.log == ["begin", b'{"n":1}', "commit"]


def test_a_file_keeps_the_offsets_of_all_connectors(tmp_path: Path) -> None:
    file = tmp_path / "offsets"
    store = FileOffsets(str(file))
    assert store.load("a") == {}
    store.write("a", {'{"f":"x"}': '{"n":1}'}, nothing)
    store.write("b", {'{"f":"x"}': '{"n":2}', '{"f":"y"}': '{"n":3}'}, nothing)
    store.write("b", {'{"f":"x"}': None}, nothing)
    again = FileOffsets(str(file))
    assert again.load("a") == {'{"f":"x"}': {"n": 1}}
    assert again.load("b") == {'{"f":"y"}': {"n": 3}}
    assert [json.loads(line)["key"] for line in file.read_text().splitlines()] == [
        ["a", {"f": "x"}],
        ["b", {"f": "y"}],
    ]
    assert [each.name for each in tmp_path.iterdir()] == ["offsets"]


def test_threads_share_a_file(tmp_path: Path) -> None:
    assert FileOffsets.at(str(tmp_path / "o")) is FileOffsets.at(str(tmp_path / "x" / ".." / "o"))


@pytest.mark.parametrize("data", [b"\xac\xed\x00\x05sr", b"no json\n", b'{"key":1}\n', b"\xff\n"])
def test_another_file_is_not_taken_for_one_of_offsets(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "offsets"
    file.write_bytes(data)
    with pytest.raises(ConnectError, match="offsets"):
        FileOffsets(str(file)).load("a")
    assert file.read_bytes() == data


class Waiting:
    """A consumer at which three messages are, and which would wait for more."""

    def poll(self, timeout: float) -> str | None:
        return "first" if timeout else None

    def consume(self, count: int, timeout: float) -> list[str]:
        assert timeout == 0, "it waits for as many as are asked for"
        return ["second", "third"][:count]


def test_what_is_there_is_taken_without_waiting_for_more() -> None:
    consumer: Any = Waiting()
    assert at_hand(consumer, 1000, 1.0) == ["first", "second", "third"]
    assert at_hand(consumer, 2, 1.0) == ["first", "second"]
    assert at_hand(consumer, 1000, 0) == []
