"""ExtractNewRecordState: of a change, what is in the row now. A delete becomes a tombstone, a row that says so, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from penstock.connect.data.schema import OPTIONAL_STRING, STRING, Schema, Type
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError, InvalidConfig
from penstock.connect.interface import Transformation
from penstock.connect.records import ConnectRecord, Header
from penstock.connect.settings import LOW, Kind, Setting, Settings, one_of
from penstock.connect.transforms.debezium.envelope import (
    AFTER,
    BEFORE,
    DELETE,
    OPERATION,
    PACKAGE,
    SOURCE,
    TRANSACTION,
    bare_optional,
    is_change,
    of_type,
)
from penstock.connect.transforms.debezium.fields_dropped import FieldsDropped
from penstock.connect.transforms.sides import (
    REPLACE_NULL,
    BySchema,
    Copier,
    fields_of,
    require_struct,
    with_basics,
)

MODE: Final = "delete.tombstone.handling.mode"
OLD_MODE, OLD_TOMBSTONES = "delete.handling.mode", "drop.tombstones"
DROP, TOMBSTONE, REWRITE = "drop", "tombstone", "rewrite"
REWRITE_WITH_TOMBSTONE, DELETE_TO_TOMBSTONE = "rewrite-with-tombstone", "delete-to-tombstone"
DELETED: Final = "__deleted"
_PURPOSE: Final = "source field insertion"
_OF_TRANSACTION: Final = ("id", "total_order", "data_collection_order")
_OF_ENVELOPE: Final = (OPERATION, "ts_ms", "ts_us", "ts_ns")


class Reference(NamedTuple):
    """A field of the envelope, or of a struct in it, and its name in what comes out."""

    struct: str | None
    field: str
    name: str


class Found(NamedTuple):
    """Where it stands: in the struct at `outer`, or in the envelope itself."""

    name: str
    outer: int | None
    place: int
    schema: Schema


class _Plan(NamedTuple):
    before: int | None
    after: int
    fields: tuple[Found, ...]
    headers: tuple[Found, ...]


class _Row(NamedTuple):
    """Of the rows of an envelope: their schema with what is added."""

    schema: Schema
    copied: Copier


class ExtractNewRecordState(Transformation):
    java_names = (PACKAGE + "ExtractNewRecordState",)
    settings = Settings(
        Setting(
            MODE,
            Kind.STRING,
            "What becomes of deletes and of the tombstones behind them. drop: both are left out. tombstone: the delete becomes "
            "a tombstone, the other is left out. rewrite: the delete is the old row with __deleted=true, the tombstone is left "
            "out. rewrite-with-tombstone: the same, and the tombstone stays. delete-to-tombstone: tombstone without a schema.",
            default=TOMBSTONE,
            check=one_of(
                DROP, TOMBSTONE, REWRITE, REWRITE_WITH_TOMBSTONE, DELETE_TO_TOMBSTONE, any_case=True
            ),
        ),
        Setting(
            OLD_TOMBSTONES, Kind.BOOLEAN, "Older: tombstones are left out.", default=None, importance=LOW
        ),
        Setting(
            OLD_MODE,
            Kind.STRING,
            "Older: what becomes of deletes.",
            default=None,
            importance=LOW,
            check=one_of(DROP, REWRITE, "none", any_case=True),
        ),
        Setting(
            "route.by.field",
            Kind.STRING,
            "The column whose value becomes the topic.",
            default="",
            importance=LOW,
        ),
        Setting(
            "add.fields.prefix",
            Kind.STRING,
            "What fields that are added begin with.",
            default="__",
            importance=LOW,
        ),
        Setting(
            "add.fields",
            Kind.LIST,
            "What is added to the row: op, ts_ms, source.lsn, transaction.id, or with another name source.ts_ms:time.",
            default=[],
            importance=LOW,
        ),
        Setting(
            "add.headers.prefix",
            Kind.STRING,
            "What headers that are added begin with.",
            default="__",
            importance=LOW,
        ),
        Setting(
            "add.headers", Kind.LIST, "What becomes headers, named likewise.", default=[], importance=LOW
        ),
        Setting(
            REPLACE_NULL,
            Kind.BOOLEAN,
            "Whether nulls get the defaults of their columns where the row is rewritten.",
            default=True,
            importance=LOW,
        ),
        *FieldsDropped.settings,
    )

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        self._on_delete, self._keeps_tombstones = _handling(self.values)
        self._is_rewriting = self._on_delete == REWRITE
        self._fields = references(self.values["add.fields.prefix"], self.values["add.fields"])
        self._headers = references(self.values["add.headers.prefix"], self.values["add.headers"])
        self._route_by: str = self.values["route.by.field"]
        self._dropped = FieldsDropped(self.values)
        self._plans = BySchema(self._plan)
        self._rows: dict[tuple[Schema, Schema], _Row] = {}

    def _plan(self, schema: Schema) -> _Plan:
        before, after = schema.field(BEFORE), schema.field(AFTER)
        if after is None:
            raise DataError(f"Unknown field: {AFTER}")
        return _Plan(
            None if before is None else before.index,
            after.index,
            tuple(found for each in self._fields if (found := find(schema, each)) is not None),
            tuple(found for each in self._headers if (found := find(schema, each)) is not None),
        )

    def _row(self, envelope: Schema, row: Schema, plan: _Plan) -> _Row:
        found = self._rows.get((envelope, row))
        if found is None:
            marked = [(DELETED, OPTIONAL_STRING)] if self._is_rewriting else []
            added = [(each.name, each.schema) for each in plan.fields]
            made = with_basics(row, fields=[*fields_of(row), *marked, *added])
            found = _Row(made, Copier(row, with_defaults=self._is_rewriting and self.values[REPLACE_NULL]))
            if len(self._rows) >= 64:
                self._rows.clear()
            self._rows[envelope, row] = found
        return found

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        if record.value is None:
            return self._tombstone(record)
        if not is_change(record):
            return record
        envelope = require_struct(record.value, "reading a change")
        plan = self._plans(envelope.schema)
        headers = record.headers
        if plan.headers:
            added = [Header(each.name, value_of(envelope, each), each.schema) for each in plan.headers]
            headers = (*headers, *added)
        after = envelope.values[plan.after]
        before = None if plan.before is None else envelope.values[plan.before]
        if after is not None:
            return self._written(record, envelope, plan, after, headers, is_deleted=False)
        if before is None:
            return None  # the table was emptied
        return self._deleted(record, envelope, plan, before, headers)

    def _tombstone(self, record: ConnectRecord) -> ConnectRecord | None:
        if not self._keeps_tombstones:
            return None
        added = [Header(each.name, DELETE, STRING) for each in self._headers if each.field == OPERATION]
        return record.replaced(headers=(*record.headers, *added)) if added else record

    def _written(
        self,
        record: ConnectRecord,
        envelope: Struct,
        plan: _Plan,
        row: Any,
        headers: tuple[Header, ...],
        *,
        is_deleted: bool,
    ) -> ConnectRecord:
        row = require_struct(row, _PURPOSE)
        updated, copied = self._row(envelope.schema, row.schema, plan)
        values = copied(row)
        if self._is_rewriting:
            values.append("true" if is_deleted else "false")
        for each in plan.fields:
            values.append(value_of(envelope, each))
        changed = record.replaced(
            topic=self._topic(record, row),
            value_schema=updated,
            value=Struct.trusted(updated, values),
            headers=headers,
        )
        return self._dropped(changed) if self._dropped.header else changed

    def _deleted(
        self, record: ConnectRecord, envelope: Struct, plan: _Plan, before: Any, headers: tuple[Header, ...]
    ) -> ConnectRecord | None:
        if self._on_delete == DROP:
            return None
        if self._on_delete == REWRITE:
            return self._written(record, envelope, plan, before, headers, is_deleted=True)
        # A sink may want to know the schema of what is gone; a tombstone has none.
        schema = None if self._on_delete == DELETE_TO_TOMBSTONE else envelope.schema.fields[plan.after].schema
        topic = self._topic(record, require_struct(before, _PURPOSE))
        changed = record.replaced(topic=topic, value_schema=schema, value=None, headers=headers)
        return self._dropped(changed) if self._dropped.header else changed

    def _topic(self, record: ConnectRecord, row: Struct) -> str:
        if not self._route_by:
            return record.topic
        topic: str | None = of_type(row, self._route_by, Type.STRING)
        return topic if topic is not None and topic.strip() else record.topic


def _handling(values: Mapping[str, Any]) -> tuple[str, bool]:
    """What becomes of a delete (drop, tombstone, rewrite, delete-to-tombstone), and whether tombstones stay."""
    old_mode, old_tombstones = values[OLD_MODE], values[OLD_TOMBSTONES]
    if old_mode is not None or old_tombstones is not None:
        mode = (old_mode or DROP).lower()
        return TOMBSTONE if mode == "none" else mode, old_tombstones is False
    mode = values[MODE].lower()
    return (REWRITE, True) if mode == REWRITE_WITH_TOMBSTONE else (mode, False)


def references(prefix: str, named: list[str]) -> tuple[Reference, ...]:
    """InvalidConfig."""
    found = []
    for text in named:
        path, *names = text.split(":")
        if len(names) > 1:
            raise InvalidConfig(f"Unexpected field name: {text}")
        steps = path.split(".")
        field = steps[0] if len(steps) == 1 else steps[1]
        struct = _home(field) if len(steps) == 1 else steps[0]
        default = field if len(steps) == 1 else f"{struct}_{field}"
        found.append(Reference(struct, field, prefix + (names[0] if names else default)))
    return tuple(found)


def _home(field: str) -> str | None:
    """In which struct a field is that is named alone."""
    if field in _OF_ENVELOPE:
        return None
    if field == "updateDescription":
        return field
    return TRANSACTION if field in _OF_TRANSACTION else SOURCE


def find(envelope: Schema, wanted: Reference) -> Found | None:
    """In its struct, else in the envelope. None: there is no such field, and nothing is added."""
    around = envelope.field(wanted.struct) if wanted.struct is not None else None
    if around is not None and around.schema.type is Type.STRUCT:
        field = around.schema.field(wanted.field)
        if field is not None:
            return Found(wanted.name, around.index, field.index, bare_optional(field.schema))
    field = envelope.field(wanted.field)
    return None if field is None else Found(wanted.name, None, field.index, bare_optional(field.schema))


def value_of(envelope: Struct, found: Found) -> Any:
    if found.outer is None:
        return envelope.values[found.place]
    around = envelope.values[found.outer]
    return None if around is None else around.values[found.place]
