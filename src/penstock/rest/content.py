"""The content types of v2: the version, and in it the format of keys and values."""

from __future__ import annotations

from typing import Final

from penstock.rest.values import AVRO, BINARY, JSON, JSONSCHEMA, PROTOBUF
from penstock.web.content_types import JSON as PLAIN
from penstock.web.content_types import OCTETS, ContentTypes

V2: Final = "application/vnd.kafka.v2+json"
OF_FORMAT: Final = {
    format_: f"application/vnd.kafka.{format_.lower()}.v2+json"
    for format_ in (BINARY, JSON, AVRO, JSONSCHEMA, PROTOBUF)
}
FORMAT_OF: Final = {V2: BINARY, **{content: format_ for format_, content in OF_FORMAT.items()}}

ADMIN: Final = ContentTypes(
    accepted=(V2, *OF_FORMAT.values(), PLAIN, OCTETS), offered=(V2, *OF_FORMAT.values(), PLAIN)
)
PRODUCE: Final = ContentTypes(accepted=(V2, *OF_FORMAT.values()), offered=(V2, *OF_FORMAT.values(), PLAIN))
