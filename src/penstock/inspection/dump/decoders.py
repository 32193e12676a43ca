"""How kafka-dump-log turns keys and values into text: Kafka's decoders, by the names of their classes."""

import struct
from collections.abc import Callable

from penstock.client.errors import Refused, UserError
from penstock.inspection.dump.coordinator_records import UnknownType, Unreadable, record_decoder
from penstock.inspection.dump.coordinator_schemas import GROUP_RECORDS, SHARE_RECORDS, TRANSACTION_RECORDS
from penstock.records.walk import Record

CHOICES = "StringDecoder, IntegerDecoder, LongDecoder or DefaultDecoder"

Decoder = Callable[[Record], tuple[str | None, str | None]]
"""The text of a record's key and value; None where there is nothing to show."""

_FIRST_BYTES = {"IntegerDecoder": struct.Struct(">i"), "LongDecoder": struct.Struct(">q")}
_COORDINATORS = {
    "offsets-decoder": GROUP_RECORDS,
    "transaction-log-decoder": TRANSACTION_RECORDS,
    "share-group-state-decoder": SHARE_RECORDS,
}


def value_decoder(*, key_class: str, value_class: str) -> Decoder:
    decode_key, decode_value = _by_class(key_class), _by_class(value_class)

    def decode(record: Record) -> tuple[str | None, str | None]:
        return (
            None if record.key is None else decode_key(record.key),
            None if record.value is None else decode_value(record.value),
        )

    return decode


def coordinator_decoder(option: str) -> Decoder:
    read = record_decoder(_COORDINATORS[option])

    def decode(record: Record) -> tuple[str | None, str | None]:
        if record.key is None:
            raise Refused(
                f"Failed to decode message at offset {record.offset} using the specified decoder "
                "(message had a missing key)"
            )
        try:
            return read(record.key, record.value)
        except UnknownType as unknown:
            return f"Unknown record type {unknown.type_id} at offset {record.offset}, skipping.", None
        except Unreadable as error:
            return f"Error at offset {record.offset}, skipping. {error}", None

    return decode


def _by_class(class_name: str) -> Callable[[bytes], str]:
    name = class_name.rpartition(".")[2]
    if name == "StringDecoder":
        return lambda data: data.decode("utf-8", "replace")
    if name == "DefaultDecoder":
        # Kafka's own prints where in memory the bytes are; these are the bytes.
        return bytes.hex
    if name in _FIRST_BYTES:
        layout = _FIRST_BYTES[name]

        def number(data: bytes) -> str:
            if len(data) < layout.size:
                raise UserError(f"{name} needs {layout.size} bytes, and a record has only {len(data)}")
            return str(layout.unpack_from(data)[0])

        return number
    raise UserError(f"the decoder {class_name} is not known; there are {CHOICES}")
