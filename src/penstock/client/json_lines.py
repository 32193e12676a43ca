"""Values by the schemas of a registry as texts of JSON: what command lines print and are given.

    JsonReader(registry).read(data)          → what `json.dumps` takes
    JsonWriter(registry, topic).write(value) → the bytes of a record's value or key

What is wrong with one record is InvalidValue, and the next one may be right: it is not framed, its schema is not there or of
another kind, its bytes do not fit. What is wrong with the registry, or with the login there, is raised as it is.
"""

from __future__ import annotations

import importlib
import json
from typing import Any, Final, NoReturn

from penstock.client.errors import UserError, one_line
from penstock.client.schema_registry import RegistryRefused, SchemaRegistry
from penstock.client.schema_values import LATEST, ReadSchema, SchemaChoice, ValueReader, ValueWriter
from penstock.schemas.model import AVRO, JSON, PROTOBUF, InvalidSchema, InvalidValue
from penstock.schemas.values import HOMES

DEFAULT_URL: Final = "http://localhost:8081"
KIND_NAMES: Final = {"avro": AVRO, "json-schema": JSON, "protobuf": PROTOBUF}
"""As options and messages have them."""
_NAMES: Final = {kind: name for name, kind in KIND_NAMES.items()}
_NOT_FOUND: Final = 404


class JsonReader:
    """`kind`: values of other kinds are refused; None takes all of them. `plain`, `original_names`: see `codec_of`."""

    def __init__(
        self,
        registry: SchemaRegistry,
        kind: str | None = None,
        *,
        plain: bool = False,
        original_names: bool = True,
    ) -> None:
        check_installed(kind)
        self._reader = ValueReader(registry, plain=plain, original_names=original_names)
        self._kind = kind

    def read(self, data: bytes) -> Any:
        try:
            value, schema = self._reader.read(data)
        except InvalidValue as error:
            raise InvalidValue(one_line(error)) from None
        except ModuleNotFoundError as error:
            raise _not_installed(error) from None
        except InvalidSchema as error:
            raise InvalidValue(f"its schema cannot be used: {one_line(error)}") from None
        except RegistryRefused as error:
            if error.status != _NOT_FOUND:
                raise
            raise InvalidValue(f"the registry does not have its schema: {one_line(error)}") from None
        if self._kind not in (None, schema.schema.kind):
            raise InvalidValue(_of_other_kind(schema, str(self._kind)))
        return value


class JsonWriter:
    """Of the values or keys of one topic, with one schema."""

    def __init__(
        self,
        registry: SchemaRegistry,
        topic: str,
        choice: SchemaChoice = LATEST,
        *,
        kind: str | None = None,
        is_key: bool = False,
    ) -> None:
        check_installed(kind)
        self._writer = ValueWriter(registry, topic, choice, is_key=is_key)
        self._kind = kind
        self._is_checked = False

    def check(self) -> None:
        """Asks the registry: a schema that cannot be had is told before the first value is there. UserError."""
        try:
            schema = self._writer.schema()
        except ModuleNotFoundError as error:
            raise _not_installed(error) from None
        except (InvalidSchema, InvalidValue) as error:
            raise UserError(f"the schema cannot be used: {one_line(error)}") from None
        if self._kind not in (None, schema.schema.kind):
            raise UserError(_of_other_kind(schema, str(self._kind)).replace("its schema", "the schema", 1))
        self._is_checked = True

    def write(self, value: Any) -> bytes:
        if not self._is_checked:
            self.check()
        try:
            return self._writer.write(value)
        except InvalidValue as error:
            raise InvalidValue(one_line(error)) from None

    def write_text(self, text: str) -> bytes:
        return self.write(parsed(text))


def parsed(text: str) -> Any:
    """What a text of JSON says. InvalidValue."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise InvalidValue("it is not JSON: it is nested too deeply") from None
    except ValueError as error:
        raise InvalidValue(f"it is not JSON: {one_line(error)}") from None


def parsed_start(text: str) -> tuple[Any, int]:
    """What the JSON at the start of a text says, and where it ends. InvalidValue."""
    start = len(text) - len(text.lstrip())
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError:
        raise InvalidValue("it does not begin with JSON: it is nested too deeply") from None
    except ValueError as error:
        raise InvalidValue(f"it does not begin with JSON: {one_line(error)}") from None


def json_line(value: Any) -> bytes:
    """Without spaces, as Confluent's tools print it. Half of a character (a surrogate alone) stays escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def check_installed(kind: str | None) -> None:
    """UserError where the library for values of the kind (Avro's for None) is not installed."""
    try:
        importlib.import_module(HOMES[kind or AVRO])
    except ModuleNotFoundError as error:
        raise _not_installed(error) from None


def _not_installed(error: ModuleNotFoundError) -> UserError:
    return UserError(
        f"values with schemas need {error.name}, which is not installed: pip install 'penstock[registry]'"
    )


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)


def _of_other_kind(schema: ReadSchema, wanted: str) -> str:
    return f"its schema (id {schema.id}) is of {_NAMES[schema.schema.kind]}, not of {_NAMES[wanted]}"
