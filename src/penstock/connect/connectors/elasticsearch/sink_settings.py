"""What the sink can be configured with, by the names of Confluent's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.connect.settings import HIGH, LOW, Kind, Setting, Settings, at_least, between, one_of

INSERT, UPSERT = "insert", "upsert"
IGNORE, DELETE, FAIL, WARN = "ignore", "delete", "fail", "warn"

SETTINGS: Final = Settings(
    Setting("connection.url", Kind.LIST, "Where the cluster is: one URL, or several for one cluster, with commas between them.",
            importance=HIGH),
    Setting("connection.username", Kind.STRING, "The user.", default=None),
    Setting("connection.password", Kind.PASSWORD, "The password.", default=None),
    Setting("connection.timeout.ms", Kind.INT, "How long connecting may take.", default=1000, check=at_least(1),
            importance=LOW),
    Setting("read.timeout.ms", Kind.INT, "How long an answer may take.", default=3000, check=at_least(1), importance=LOW),
    Setting("elastic.security.protocol", Kind.STRING, "SSL or PLAINTEXT; https in a URL is enough for TLS.",
            default="PLAINTEXT", check=one_of("PLAINTEXT", "SSL"), importance=LOW),
    Setting("elastic.https.ssl.truststore.location", Kind.STRING, "A PEM file with the authorities that are trusted.",
            default=None, importance=LOW),
    Setting("elastic.https.ssl.endpoint.identification.algorithm", Kind.STRING,
            "https: the server's name is checked; empty: it is not.",
            default="https", importance=LOW),
    Setting("batch.size", Kind.INT, "The most records in one request.", default=2000, check=between(1, 1_000_000)),
    Setting("bulk.size.bytes", Kind.LONG, "A request is sent when it is so large.", default=5 * 1024 * 1024, check=at_least(1),
            importance=LOW),
    Setting("linger.ms", Kind.LONG, "Taken, and not used: what was read together is sent together.", default=1, importance=LOW),
    Setting("max.buffered.records", Kind.INT, "Taken, and not used: nothing is kept back.", default=20000, importance=LOW),
    Setting("max.in.flight.requests", Kind.INT, "Taken, and not used: requests go one behind the other, in order.", default=5,
            importance=LOW),
    Setting("max.retries", Kind.INT, "How often a request is made again.", default=5, check=at_least(0)),
    Setting("retry.backoff.ms", Kind.LONG, "How long is waited before that.", default=100, check=at_least(0), importance=LOW),
    Setting("key.ignore", Kind.BOOLEAN, "The id of a document is topic+partition+offset, and not the record's key.",
            default=False, importance=HIGH),
    Setting("topic.key.ignore", Kind.LIST, "Topics with key.ignore=true.", default=()),
    Setting("schema.ignore", Kind.BOOLEAN, "An index gets no mappings from the schema of its first record.", default=False),
    Setting("topic.schema.ignore", Kind.LIST, "Topics with schema.ignore=true.", default=(), importance=LOW),
    Setting("compact.map.entries", Kind.BOOLEAN, "Taken, and not used: a map is always an object.",
            default=True, importance=LOW),
    Setting("write.method", Kind.STRING, "`insert` writes the whole document; `upsert` changes its fields, or adds it.",
            default=INSERT, check=one_of(INSERT, UPSERT, any_case=True)),
    Setting("drop.invalid.message", Kind.BOOLEAN, "A record that makes no document is left out.", default=False, importance=LOW),
    Setting("behavior.on.null.values", Kind.STRING, "A record without a value: `ignore`, `delete` its document, or `fail`.",
            default=FAIL, check=one_of(IGNORE, DELETE, FAIL, any_case=True)),
    Setting("behavior.on.malformed.documents", Kind.STRING, "A document that the server will not have: `ignore`, `warn`, or "
            "`fail`, which makes it a dead letter where there are some, and fails the task otherwise.", default=FAIL,
            check=one_of(IGNORE, WARN, FAIL, any_case=True)),
    Setting("data.stream.type", Kind.STRING, "logs or metrics: records go to a data stream TYPE-DATASET-NAMESPACE.",
            default="none", check=one_of("none", "logs", "metrics", any_case=True)),
    Setting("data.stream.dataset", Kind.STRING, "Its dataset.", default=""),
    Setting("data.stream.namespace", Kind.STRING, "Its namespace; ${topic} stands for the topic.", default="${topic}"),
    Setting("data.stream.timestamp.field", Kind.LIST, "Fields of which the first that is there becomes @timestamp; otherwise it "
            "is the record's timestamp.", default=()),
    Setting("auto.create", Kind.BOOLEAN, "Indexes that are not there are made.", default=True, importance=LOW),
)  # fmt: skip


def mistakes_of(values: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {}
    wrong = [url for url in values["connection.url"] if not url.startswith(("http://", "https://"))]
    if wrong or not values["connection.url"]:
        found["connection.url"] = [
            f"A URL begins with http:// or https://: {', '.join(wrong) or 'there is none'}"
        ]
    if (values["connection.username"] is None) != (values["connection.password"] is None):
        found["connection.password"] = ["connection.username and connection.password go together"]
    streams = values["data.stream.type"].lower() != "none"
    if streams != bool(values["data.stream.dataset"]):
        found["data.stream.dataset"] = ["data.stream.type and data.stream.dataset go together"]
    if streams and values["write.method"].lower() == UPSERT:
        found["write.method"] = ["What is in a data stream is not changed: use insert"]
    if streams and values["behavior.on.null.values"].lower() == DELETE:
        found["behavior.on.null.values"] = ["From a data stream nothing is deleted: use ignore or fail"]
    return found
