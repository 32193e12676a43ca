"""The records of `_schemas`, in Confluent's forms. A key is compacted by its bytes, so its fields have their fixed order.

    {"keytype":"SCHEMA","subject":"t-value","version":1,"magic":1}   {"subject":…,"version":1,"id":1,"schema":…,"deleted":false}
    {"keytype":"DELETE_SUBJECT","subject":"t-value","magic":0}        {"subject":"t-value","version":2}
    {"keytype":"CLEAR_SUBJECT","subject":"t-value","magic":0}         {"subject":"t-value"}
    {"keytype":"CONFIG","subject":"t-value","magic":0}                {"subject":…,"compatibilityLevel":"FULL"}
    {"keytype":"CONFIG","magic":0}                                    that of everything; up to 6.1 it had "subject":null
    {"keytype":"MODE","subject":"t-value","magic":0}                  {"subject":…,"mode":"READONLY"}
    {"keytype":"CONTEXT","tenant":"default","context":".ctx","magic":0}   {"tenant":"default","context":".ctx"}
    {"keytype":"NOOP","magic":0}                                      ours: {"maxIds":{".":12}}

Confluent's instances look at no value of a NOOP. Ours keeps the highest ids that were ever given, also when the schemas that had
them are gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

SCHEMA: Final = "SCHEMA"
CONFIG: Final = "CONFIG"
MODE: Final = "MODE"
NOOP: Final = "NOOP"
DELETE_SUBJECT: Final = "DELETE_SUBJECT"
CLEAR_SUBJECT: Final = "CLEAR_SUBJECT"
CONTEXT: Final = "CONTEXT"
TENANT: Final = "default"


class Record(NamedTuple):
    """One that is to be written."""

    key: bytes
    value: bytes | None


class Read(NamedTuple):
    """One that was read."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    term: bytes | None
    """The header of that name."""


def schema_key(subject: str, version: int) -> bytes:
    return orjson.dumps({"keytype": SCHEMA, "subject": subject, "version": version, "magic": 1})


def subject_key(keytype: str, subject: str | None) -> bytes:
    if subject is None:
        return orjson.dumps({"keytype": keytype, "magic": 0})
    return orjson.dumps({"keytype": keytype, "subject": subject, "magic": 0})


def former_global_key(keytype: str) -> bytes:
    """As registries up to 6.1 and Karapace have it."""
    return orjson.dumps({"keytype": keytype, "subject": None, "magic": 0})


def context_key(context: str) -> bytes:
    return orjson.dumps({"keytype": CONTEXT, "tenant": TENANT, "context": context, "magic": 0})


def noop(max_ids: Mapping[str, int]) -> Record:
    return Record(subject_key(NOOP, None), orjson.dumps({"maxIds": dict(max_ids)}))


def deleted_subject(subject: str, version: int) -> Record:
    return Record(
        subject_key(DELETE_SUBJECT, subject), orjson.dumps({"subject": subject, "version": version})
    )


def cleared_subject(subject: str | None) -> Record:
    value = {} if subject is None else {"subject": subject}
    return Record(subject_key(CLEAR_SUBJECT, subject), orjson.dumps(value))


def config(subject: str | None, document: Mapping[str, Any] | None) -> Record:
    return _of_subject(CONFIG, subject, document)


def mode(subject: str | None, mode_name: str | None) -> Record:
    return _of_subject(MODE, subject, None if mode_name is None else {"mode": mode_name})


def context(name: str, *, is_deleted: bool = False) -> Record:
    value = None if is_deleted else orjson.dumps({"tenant": TENANT, "context": name})
    return Record(context_key(name), value)


def _of_subject(keytype: str, subject: str | None, document: Mapping[str, Any] | None) -> Record:
    value = None
    if document is not None:
        value = orjson.dumps(document if subject is None else {"subject": subject, **document})
    return Record(subject_key(keytype, subject), value)


def read_document(data: bytes | None) -> dict[str, Any] | None:
    """None for what is not a JSON object."""
    if data is None:
        return None
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
