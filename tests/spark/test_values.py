"""JSON values as typed columns: the same rows as from_json gives."""

from __future__ import annotations

import json

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, from_json, to_json

from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.spark.conftest import ReadTopic, finish, produce

SCHEMA = (
    "b boolean, y byte, h short, i int, l long, f float, d double, dec decimal(6,2), big decimal(38,10), s string, "
    "dt date, ts timestamp, bin binary, a array<int>, m map<string,int>, st struct<x: int, y: string>, "
    "aa array<struct<x: int>>, mm map<string,array<timestamp>>, `ação` int"
)
SHOWN = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
TEXTS = r"""
{}|null||  |[]|[{"l":1}]|12|"x"|{"l":1} junk|{"l":1}{"l":2}|{"l":1|{"l":1,}|{"l":1,"i":|{l:1}|{'l':1,'s':'it'}|{"l":01}
{"l":1,"s":tru}|{"l":1 "i":2}|{"l":1,,"i":2}|// c {"l":1}|{"l":+1}|{"l":-}|{"l":1a}|{"q":{"a":[1,2}},"l":1}|{"s":"a\
{"q":{"deep":[[[{"z":tru}]]]},"l":1}|{"q":[{},[],{"w":[1,{"v":null}]}],"l":1}|{"l": 1 , "s" : "x" }|{"":1,"l":2}
{"l":1.0}|{"l":1.5,"i":2}|{"l":1e2}|{"l":"12"}|{"l":true}|{"l":9223372036854775807}|{"l":9223372036854775808,"i":1}
{"l":-9223372036854775808}|{"l":-0}|{"y":127}|{"y":128}|{"y":256,"l":1}|{"h":32767}|{"h":32768}|{"i":2147483648,"y":1}
{"f":1.1,"d":1.1}|{"d":1}|{"d":1e400}|{"f":1e39}|{"d":"NaN","f":"-Infinity"}|{"d":NaN,"f":-Infinity}|{"f":+INF}
{"d":Infinity}|{"d":"INF"}|{"d":"1.5"}|{"d":true}|{"d":.5}|{"d":5.}|{"d":1e}|{"d":-0.0}|{"d":0.30000000000000004}
{"d":123456789012345678901234567890}|{"d":2.2250738585072014e-308}|{"d":4.9e-324}|{"f":16777217}|{"d":"+INF"}
{"dec":1.005}|{"dec":-1.015}|{"dec":"12.345"}|{"dec":99999}|{"dec":9999.999}|{"dec":1e3}|{"dec":"x","l":1}|{"dec":""}
{"big":1234567890123456789012345678.12345678901}|{"big":1e30}|{"big":"0.00000000005"}|{"big":-1}|{"dec":0.0001}
{"s":12}|{"s":true}|{"s":null}|{"s":{"a": 1, "b":[1, "x y"]}}|{"s":[1, "x"]}|{"s":"a\u00e9\n\"\/\ud83d\ude00"}
{"s":"é😀"}|{"s":"\ud83d"}|{"s":"\x"}|{"s":"\u12"}|{"s":""}|{"s":'a"b'}|{"s":"a long text without anything special"}
{"b":true}|{"b":"true"}|{"b":1}|{"b":false,"b":true}|{"l":1,"l":null}|{"\u006c":7}|{"L":7}|{"l":1,"b":[true]}
{"dt":"2024-02-29"}|{"dt":"2023-02-29","l":1}|{"dt":"2024-2-9"}|{"dt":"2024"}|{"dt":"2024-02"}|{"dt":"2024-02-29T1"}
{"dt":19000}|{"dt":"x"}|{"dt":" 2024-02-29 "}|{"dt":""}|{"dt":"0001-01-01"}|{"dt":"2024-02-29 junk"}|{"dt":"1582-10-10"}
{"ts":"2024-02-29T10:11:12Z"}|{"ts":"2024-02-29T10:11:12.123456789Z"}|{"ts":"2024-02-29 10:11:12"}|{"ts":1709201472}
{"ts":"2024-02-29T10:11:12.5+02:00"}|{"ts":"2024-02-29T10:11:12+0200"}|{"ts":"2024-02-29T10:11:12-02"}|{"ts":-1}
{"ts":"2024-02-29T10:11"}|{"ts":"2024-02-29T10"}|{"ts":"2024-02-29"}|{"ts":"2024-02"}|{"ts":"1709201472"}|{"ts":1.5}
{"ts":"x","l":1}|{"ts":"2024-02-30T00:00:00Z"}|{"ts":"2024-02-29T24:00:00Z"}|{"ts":"2024-02-29T10:11:12 UTC"}
{"ts":"2024-07-29T10:11:12 America/New_York"}|{"ts":"2024-07-29T10:11:12 Nowhere/Land"}|{"ts":"2024-02-29T10:11:12GMT+1"}
{"ts":"2024-02-29T10:11:12+19:00"}|{"ts":"2024-02-29T10:11:12."}|{"ts":"2024-2-9 1:2:3"}|{"ts":"1900-01-01T00:00:00"}
{"ts":"2024-02-29T10:11:12\u005a"}|{"ts":"0001-01-01T00:00:00Z"}|{"ts":""}|{"ts":true,"l":1}|{"ts":"20240229T101112Z"}
{"bin":"aGVsbG8="}|{"bin":"aGVsbG8"}|{"bin":"!!"}|{"bin":1}|{"bin":""}|{"bin":"aGV sbG8="}|{"bin":"aGVs"}|{"bin":"aA=="}
{"bin":"\/+\/+"}|{"a":[1,2,null]}|{"a":[]}|{"a":[1,"x",3],"l":1}|{"a":1,"l":1}|{"a":{"x":1},"l":1}|{"a":null}
{"a":[1.5]}|{"a":[[1]]}|{"m":{"x":1,"y":null}}|{"m":{}}|{"m":{"x":"bad","y":2},"l":1}|{"m":[1],"l":1}|{"m":{"x":1,"x":2}}
{"st":{"x":1,"y":"z","q":[1,{"w":2}]}}|{"st":{"x":"bad","y":"z"},"l":1}|{"st":{}}|{"st":1,"l":1}|{"st":[1]}|{"st":null}
{"a\u00e7\u00e3o":1}|{"ação":2}|{"a\u00e7ao":3}|{"ts":"-290308-01-01T00:00:00Z","l":1}|{"ts":"2024-02-29T10:11:12 UTC+99"}
{"ts":"2024-02-29T10:11:12GMT-18:01"}|{"big":"1234567890123456789_0","l":1}|{"big":"1234567890123456789 ","l":1}
{"aa":[{"x":1},{"x":"bad"},null,{}]}|{"aa":[{"x":1},5]}|{"aa":{"x":1}}|{"mm":{"k":["2024-01-01T00:00:00Z",null],"é":[]}}
"""


def cases() -> list[bytes | None]:
    """Parts of the lines above; and what cannot stand there."""
    listed = [part.encode() for line in TEXTS.strip("\n").split("\n") for part in line.split("|")]
    return [
        *listed, None, b'{"s":"\xff\xfe","l":1}', b'{"q":"\xc3","l":1}', b'\xef\xbb\xbf{"l":1}', b'{"s":"a\nb"}',
        b'{"s":"a\tb"}', b'\n{"l":\r\n\t1}\n', b'{"l":1}\x00',
    ]  # fmt: skip


def test_the_rows_are_those_of_from_json(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic
) -> None:
    topic = make_topic()
    produce(broker.bootstrap, topic, [{"value": value} for value in cases()])
    theirs = read_topic(topic).withColumn("value", from_json(col("value").cast("string"), SCHEMA))
    ours = read_topic(topic, valueSchema=SCHEMA)
    assert ours.schema["value"].dataType == theirs.schema["value"].dataType
    expected, found = _shown(theirs), _shown(ours)
    different = [
        (value, expected[offset], found[offset])
        for offset, value in enumerate(cases())
        if expected[offset] != found[offset]
    ]
    assert not different
    assert len(found) == len(cases()) > 150


def _shown(frame: DataFrame) -> list[str | None]:
    return [row[0] for row in frame.orderBy("offset").select(to_json("value", SHOWN)).collect()]


def test_a_stream_has_typed_values_and_the_bytes_for_dead_letters(
    broker: PenstockBroker, make_topic: MakeTopic, stream_topic: ReadTopic
) -> None:
    topic = make_topic()
    produce(broker.bootstrap, topic, [{"value": '{"id": 7, "who": {"name": "ana"}}'}, {"value": "broken"}])
    stream = stream_topic(
        topic,
        valueSchema="id long, who struct<name: string>",
        includeRawValue="true",
        startingOffsets="earliest",
    )
    query = (
        stream.select("value.id", "value.who.name", "rawValue")
        .writeStream.format("memory")
        .queryName("typed")
        .trigger(availableNow=True)
        .start()
    )
    finish(query)
    rows = stream.sparkSession.table("typed").collect()
    assert [(row.id, row.name, bytes(row.rawValue)) for row in rows] == [
        (7, "ana", b'{"id": 7, "who": {"name": "ana"}}'),
        (None, None, b"broken"),
    ]


def test_failfast_names_the_record(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic
) -> None:
    topic = make_topic()
    produce(broker.bootstrap, topic, [{"value": json.dumps({"id": id_})} for id_ in (1, 2, "three")])
    frame = read_topic(topic, valueSchema="id long", valueMode="FAILFAST")
    with pytest.raises(
        PySparkException, match=f'{topic}-0 at offset 2 has a field of another type: {{"id": "three"}}'
    ):
        frame.collect()


def test_a_schema_that_is_none_is_refused_by_the_options_name(read_topic: ReadTopic) -> None:
    with pytest.raises(PySparkException, match="option 'valueSchema' has «lnog»"):
        read_topic("any", valueSchema="id lnog")
