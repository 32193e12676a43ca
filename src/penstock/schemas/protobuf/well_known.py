"""Files that may be imported without a reference: Protobuf's own, Google's common types, and Confluent's."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Final

from google.protobuf import descriptor_pb2

from penstock.schemas.protobuf.describing import describe
from penstock.schemas.protobuf.linking import Linked, link
from penstock.schemas.protobuf.reading import read_file

_PROTOBUF: Final = (
    "any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct", "timestamp", "type", "wrappers",
)  # fmt: skip
_GOOGLE: Final = (
    "calendar_period", "color", "date", "datetime", "dayofweek", "decimal", "expr", "fraction", "interval", "latlng",
    "localized_text", "money", "month", "phone_number", "postal_address", "quaternion", "timeofday",
)  # fmt: skip
_MODULES: Final = {f"google/protobuf/{name}.proto": f"google.protobuf.{name}_pb2" for name in _PROTOBUF} | {
    f"google/type/{name}.proto": f"google.type.{name}_pb2" for name in _GOOGLE
}
DESCRIPTOR: Final = "google/protobuf/descriptor.proto"

# Names and numbers are Confluent's: its clients mark fields with them.
_META: Final = """
syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
option java_package = "io.confluent.protobuf";
option java_outer_classname = "MetaProto";
message Meta {
  string doc = 1;
  map<string, string> params = 2;
  repeated string tags = 3;
  repeated Rule rules = 4;
}
message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
"""
_TYPE: Final = """
syntax = "proto3";
package confluent.type;
option java_package = "io.confluent.protobuf.type";
option java_multiple_files = true;
"""
_DECIMAL: Final = _TYPE + "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }"
_VARIANT: Final = _TYPE + "message Variant { bytes metadata = 1; bytes value = 2; }"
_TEXTS: Final = {
    "confluent/meta.proto": _META,
    "confluent/type/decimal.proto": _DECIMAL,
    "confluent/type/variant.proto": _VARIANT,
}
PATHS: Final = frozenset(_MODULES) | frozenset(_TEXTS)


@cache
def well_known(path: str) -> Linked:
    """One of PATHS. Whoever gets it must not change it."""
    if path in _TEXTS:
        proto = describe(read_file(_TEXTS[path]), path).proto
    else:
        module = importlib.import_module(_MODULES[path])
        proto = descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
    return link(proto, {each: well_known(each) for each in proto.dependency})[0]
