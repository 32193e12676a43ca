"""The content types of ksqlDB's REST API."""

from __future__ import annotations

from typing import Final

from penstock.web.content_types import JSON, OCTETS, ContentTypes

V1: Final = "application/vnd.ksql.v1+json"
DELIMITED: Final = "application/vnd.ksqlapi.delimited.v1"
TEXT: Final = "text/plain"
ACCEPTED: Final = (V1, JSON, DELIMITED, TEXT, OCTETS, "application/x-www-form-urlencoded")
KSQL: Final = ContentTypes(accepted=ACCEPTED, offered=(V1, JSON))
QUERY_STREAM: Final = ContentTypes(accepted=ACCEPTED, offered=(DELIMITED, JSON, V1))
