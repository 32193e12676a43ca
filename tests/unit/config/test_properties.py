import pytest

from penstock.config.option import ConfigError
from penstock.config.properties import parse_properties, repeated_names

# The settings of the server.properties that Apache Kafka ships, with its kind of comments between them.
SHIPPED = """\
# Licensed to somebody under some terms.
#   FORMAT:
#     listeners = listener_name://host_name:port

############################# Server Basics #############################

process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093

listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL

num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600

############################# Log Basics #############################
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
#log.flush.interval.messages=10000
log.retention.hours=168
#log.retention.bytes=1073741824
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_kafkas_own_file_is_read() -> None:
    properties = parse_properties(SHIPPED)
    assert len(properties) == 21
    assert list(properties)[:2] == ["process.roles", "node.id"]
    assert properties["listeners"] == "PLAINTEXT://:9092,CONTROLLER://:9093"
    assert "log.flush.interval.messages" not in properties


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("", {}),
        ("\n \n\t\n", {}),
        ("# a=b\n! c=d\n  # e=f", {}),
        ("a=b", {"a": "b"}),
        ("a = b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a : b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a\tb", {"a": "b"}),
        ("  a=b", {"a": "b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a==b", {"a": "=b"}),
        ("a=b=c:d", {"a": "b=c:d"}),
        ("a=b # no comment", {"a": "b # no comment"}),
        ("a=b  ", {"a": "b  "}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
        ("a=one,\\\n   two", {"a": "one,two"}),
        ("a=one,\\\n   two,\\\r\n three", {"a": "one,two,three"}),
        ("a=one\\\n# two", {"a": "one# two"}),
        ("# a comment \\\na=b", {"a": "b"}),
        ("\\\n# still a comment\na=b", {"a": "b"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\\\\\nc=d", {"a": "b\\c=d"}),
        ("a=b\\", {"a": "b"}),
        ("\\", {}),
        ("a\\=b\\:c\\ d=e", {"a=b:c d": "e"}),
        ("a=\\t\\n\\r\\f\\q\\\\", {"a": "\t\n\r\fq\\"}),
        ("a=\\u00e9\\u4E2D", {"a": "é中"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a=😀 é", {"a": "😀 é"}),
        ("a=\\ b", {"a": " b"}),
        ("a=x\fy", {"a": "x\fy"}),
        ("a=x\u2028y", {"a": "x\u2028y"}),
    ],
)
def test_a_line_is_read_as_java_reads_it(text: str, properties: dict[str, str]) -> None:
    assert parse_properties(text) == properties


@pytest.mark.parametrize("escape", ["\\u12", "\\uXYZW", "\\u", "\\u+123"])
def test_a_broken_unicode_escape_is_refused_with_its_line(escape: str) -> None:
    with pytest.raises(ConfigError, match=r"^line 3: malformed \\uxxxx encoding"):
        parse_properties(f"# one\na=b\nc={escape}")


def test_a_value_without_a_name_is_refused_with_its_first_line() -> None:
    with pytest.raises(ConfigError, match="line 2: a value without a name: =b,c"):
        parse_properties("\n=b,\\\n  c")


def test_names_with_several_values_are_found() -> None:
    assert repeated_names("a=1\nb=2\na: 3\nb = 2\n# b=5\n") == ["a"]
