"""Records of Kafka's own topics ◇ as the documents that Kafka's tools print: offsets and groups, transactions, share groups."""

from __future__ import annotations

import json
from typing import Any, Final

from penstock.inspection.dump.coordinator_records import UnknownType, Unreadable, record_decoder
from penstock.inspection.dump.coordinator_schemas import GROUP_RECORDS, SHARE_RECORDS, TRANSACTION_RECORDS

TYPES: Final = {
    "__consumer_offsets": GROUP_RECORDS,
    "__transaction_state": TRANSACTION_RECORDS,
    "__share_group_state": SHARE_RECORDS,
}
_DECODERS: Final = {topic: record_decoder(types) for topic, types in TYPES.items()}


def internal_record(topic: str, *, key: bytes | None, value: bytes | None) -> dict[str, Any] | None:
    """What the key says where `value` is None, and else what the value says; None where it is no such topic or record."""
    if topic not in TYPES or key is None:
        return None
    try:
        key_text, value_text = _DECODERS[topic](key, value)
    except (UnknownType, Unreadable):
        return None
    text = key_text if value is None else value_text
    found = json.loads(text)
    return found if isinstance(found, dict) else None
