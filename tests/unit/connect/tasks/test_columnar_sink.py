"""The columnar lane of sinks: the same as record by record, only sooner."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock.connect.connectors.columns import table_of
from penstock.connect.converters.json import JsonConverter
from penstock.connect.converters.simple import StringConverter
from penstock.connect.records import SinkRecord
from penstock.connect.tasks.columnar_sink import (
    ColumnarConversion,
    Columns,
    JsonColumns,
    NotColumns,
    conversion_of,
    decoder_of,
)
from penstock.connect.tasks.sink_converting import SinkConversion


class Message:
    def __init__(self, partition: int, offset: int, value: bytes | None, topic: str = "t") -> None:
        self._topic, self._partition, self._offset, self._value = topic, partition, offset, value

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes | None:
        return self._value

    def key(self) -> None:
        return None

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 1, 5


class Task:
    skips_nulls = True

    def __init__(self, *, refuses: bool = False) -> None:
        self.columns: list[Columns] = []
        self.records: list[SinkRecord] = []
        self._refuses = refuses

    def takes_columns(self) -> bool:
        return True

    def put_columns(self, pieces: Sequence[Columns]) -> None:
        if self._refuses:
            raise NotColumns("not these")
        self.columns += pieces

    def put(self, records: Sequence[SinkRecord]) -> None:
        self.records += records


def json_converter(**more: str) -> JsonConverter:
    made = JsonConverter()
    made.configure({"converter.type": "value", "schemas.enable": "false", **more})
    return made


def conversion(task: Task, converter: Any = None, apply: Any = None) -> Any:
    strings = StringConverter()
    strings.configure({"converter.type": "key"})
    made = SimpleNamespace(
        task=task,
        key=strings,
        value=converter or json_converter(),
        header=SimpleNamespace(to_header=None),
        apply=apply,
        chain=None,
    )
    return conversion_of(made, SimpleNamespace(run=lambda stage, by, call, origin: call()))  # type: ignore[arg-type]


def messages(*values: Any, partition: int = 0) -> list[Message]:
    return [
        Message(partition, offset, None if value is None else json.dumps(value).encode())
        for offset, value in enumerate(values)
    ]


VALUES: list[dict[str, Any]] = [
    {"a": 1, "b": "x", "c": 1.5, "d": True, "e": None},
    {"a": 2, "b": "ä\n\"", "c": 2, "f": {"g": [1, 2], "h": None}, "e": None},
    {"b": "2024-01-01T00:00:00Z", "f": {"g": [], "h": "2024-01-01"}, "i": [{"j": 1}, {"k": "y"}]},
    {},
]  # fmt: skip


def test_json_becomes_the_columns_that_single_records_would_make() -> None:
    converter = json_converter()
    texts = [json.dumps(value, indent=1).encode() for value in VALUES]
    expected = table_of(None, [converter.to_value("t", text)[1] for text in texts])
    for _ in range(2):  # the second time it knows which texts look like times
        [(schema, table)] = (decode := JsonColumns())(texts) if _ == 0 else decode(texts)
        assert schema is None
        assert table.select(expected.column_names).to_pylist() == expected.to_pylist()
        assert table.column("b").type == pa.string()
        assert table.column("f").type.field("h").type == pa.string()


@pytest.mark.parametrize(
    "values",
    [[b"{"], [b""], [b" "], [b"5"], [b"[1]"], [b'"x"'], [b"\xff"], [b'{"a":"\xff"}'], [b'{"a":1}', b'{"a":"x"}'],
     [b'{"a":1,"a":2}'], [b'{"a":1}{"a":2}']],
)  # fmt: skip
def test_what_goes_into_no_columns_is_told(values: list[bytes]) -> None:
    with pytest.raises(NotColumns):
        JsonColumns()(values)


def test_each_partition_has_pieces_of_its_own_and_nulls_no_rows() -> None:
    task = Task()
    lane = conversion(task)
    mixed = [*messages({"n": 0}, None, {"n": 2}), *messages({"n": 10}, partition=1)]
    items = lane.convert([mixed[3], mixed[0], mixed[1], mixed[2]])
    lane.put(items)
    assert [(each.original, each.table.to_pylist()) for each in task.columns] == [
        (("t", 0, 0), [{"n": 0}, {"n": 2}]),
        (("t", 1, 0), [{"n": 10}]),
    ]
    assert lane.count(items) == 3
    assert [message.offset() for message in task.columns[0].since(1).messages] == [2]
    assert task.columns[0].since(1).table.to_pylist() == [{"n": 2}]


def test_a_batch_that_does_not_go_comes_as_records_and_the_next_as_columns() -> None:
    task = Task()
    lane = conversion(task)
    lane.put(lane.convert(messages({"n": 0}, {"n": "x"})))
    assert [each.value for each in task.records] == [{"n": 0}, {"n": "x"}]
    lane.put(lane.convert(messages({"n": 0})))
    assert len(task.columns) == 1


def test_columns_that_a_task_does_not_take_come_as_records() -> None:
    task = Task(refuses=True)
    lane = conversion(task)
    lane.put(lane.convert(messages({"n": 0}, {"n": 1})))
    assert [(each.original, each.value) for each in task.records] == [
        (("t", 0, 0), {"n": 0}),
        (("t", 0, 1), {"n": 1}),
    ]


def test_null_values_come_as_records_where_the_task_wants_them() -> None:
    task = Task()
    task.skips_nulls = False
    lane = conversion(task)
    lane.put(lane.convert(messages({"n": 0}, None)))
    assert [each.value for each in task.records] == [{"n": 0}, None]


def test_the_lane_is_for_plain_json_without_transforms() -> None:
    assert isinstance(conversion(Task()), ColumnarConversion)
    assert isinstance(conversion(Task(), apply=lambda record: record), SinkConversion)
    assert isinstance(conversion(Task(), json_converter(**{"schemas.enable": "true"})), SinkConversion)
    assert decoder_of(StringConverter()) is None
