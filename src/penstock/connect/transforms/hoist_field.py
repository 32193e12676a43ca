"""HoistField: the whole key or value becomes a field of a new struct or map."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.connect.data.schema import Schema, struct_of
from penstock.connect.data.structs import Struct
from penstock.connect.records import ConnectRecord
from penstock.connect.settings import Kind, Setting, Settings
from penstock.connect.transforms.sides import PACKAGE, BySchema, OnKeyOrValue, null_refused


class HoistField(OnKeyOrValue):
    settings = Settings(Setting("field", Kind.STRING, "The name of the only field of the new struct or map."))

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        self._field: str = self.values["field"]
        self._schemas: BySchema[Schema] = BySchema(lambda schema: struct_of(None, [(self._field, schema)]))

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self.operand(record)
        if schema is None:
            return self.made(record, None, {self._field: value})
        if value is None and not schema.is_optional:
            raise null_refused(self._field, schema)
        around = self._schemas(schema)
        return self.made(record, around, Struct.trusted(around, [value]))


class HoistFieldKey(HoistField):
    is_key = True
    java_names = (PACKAGE + "HoistField$Key",)


class HoistFieldValue(HoistField):
    java_names = (PACKAGE + "HoistField$Value",)
