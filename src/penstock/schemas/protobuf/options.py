"""Options in descriptors: those of Protobuf by name, those of users (extensions) as their extension says.

An option whose extension nobody has imported, or whose value does not fit its extension, is no error, as in Confluent's
registry: it is kept uninterpreted, as protoc's parser leaves it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf import descriptor_pb2, message_factory, text_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import EncodeError

from penstock.schemas.model import InvalidSchema
from penstock.schemas.protobuf.describing import Pending
from penstock.schemas.protobuf.elements import Option, OptionValue, Word
from penstock.schemas.protobuf.linking import Names
from penstock.schemas.protobuf.normal_options import full_key
from penstock.schemas.protobuf.tokens import is_text, quoted, shortened

_MISFITS = (text_format.ParseError, EncodeError, ValueError, TypeError, RecursionError)
_TRUTHS = {"true": True, "false": False}


class OptionFilling:
    """Of one file: first `fill` for each that has options, then `extensions`."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._waiting: list[tuple[Any, list[tuple[Option, str]]]] = []
        self._encoded: dict[tuple[str, str], bytes] = {}

    def fill(self, pending: Pending) -> None:
        """Protobuf's own options. InvalidSchema."""
        target: Any = pending.holder.options
        kind = target.DESCRIPTOR.full_name
        extensions = []
        for option in pending.options:
            if option.extension:
                full = self._names.extension(option.name, pending.scope)
                if full is None or self._names.extensions[full].extendee != f".{kind}":
                    target.uninterpreted_option.extend(_uninterpreted(option))
                else:
                    extensions.append((option, self._written(f"[{full}]", option.value, pending.scope)))
            elif option.name not in target.DESCRIPTOR.fields_by_name:
                target.uninterpreted_option.extend(_uninterpreted(option))
            elif not _set(target, option):
                text = self._written(option.name, option.value, pending.scope)
                try:
                    text_format.Merge(text, target)
                except _MISFITS as e:
                    raise InvalidSchema(f"option {shortened(text)}: {str(e).splitlines()[0]}") from None
        if extensions:
            self._waiting.append((target, extensions))

    def extensions(self, make_pool: Callable[[], DescriptorPool]) -> None:
        """Those of users. The pool has what the file imports, and the file as it is now. InvalidSchema: no pool can be made."""
        if not self._waiting:
            return
        pool = make_pool()
        for target, extensions in self._waiting:
            try:
                text = "\n".join(text for _, text in extensions)
                target.MergeFromString(self._encode(pool, target.DESCRIPTOR.full_name, text))
            except _MISFITS:  # Confluent's registry does not look into them either
                for option, _ in extensions:
                    target.uninterpreted_option.extend(_uninterpreted(option))

    def _encode(self, pool: DescriptorPool, kind: str, text: str) -> bytes:
        key = (kind, text)
        if key not in self._encoded:
            new = message_factory.GetMessageClass(pool.FindMessageTypeByName(kind))()
            text_format.Merge(text, new, descriptor_pool=pool)
            self._encoded[key] = new.SerializeToString(deterministic=True)
        return self._encoded[key]

    def _written(self, name: str, value: OptionValue, scope: str) -> str:
        """In Protobuf's text form."""
        if isinstance(value, Option):
            inner = full_key(f"[{value.name}]", scope, self._names) if value.extension else value.name
            return f"{name} {{ {self._written(inner, value.value, scope)} }}"
        return f"{name}: {_text(value, lambda each: full_key(each, scope, self._names))}"


def _set(target: Any, option: Option) -> bool:
    """The usual ones, without a detour."""
    value = option.value
    if isinstance(value, Word) and value.text in _TRUTHS:
        try:
            setattr(target, option.name, _TRUTHS[value.text])
        except (TypeError, AttributeError):
            return False
        return True
    if isinstance(value, str) and is_text(value):
        try:
            setattr(target, option.name, value)
        except (TypeError, AttributeError, ValueError):
            return False
        return True
    return False


def _text(value: OptionValue, full: Callable[[str], str] = str) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Word):
        return value.text
    if isinstance(value, list):
        return f"[{', '.join(_text(each, full) for each in value)}]"
    assert isinstance(value, dict)
    return f"{{ {' '.join(f'{full(name)}: {_text(each, full)}' for name, each in value.items())} }}"


def _uninterpreted(option: Option) -> list[descriptor_pb2.UninterpretedOption]:
    parts = []
    value: OptionValue = option
    while isinstance(value, Option):
        parts.append((value.name, value.extension))
        value = value.value
    made = []
    for each in value if isinstance(value, list) else [value]:
        made.append(_word(each))
        for name, extension in parts:
            made[-1].name.add(name_part=name, is_extension=extension)
    return made


def _word(value: OptionValue) -> descriptor_pb2.UninterpretedOption:
    word = descriptor_pb2.UninterpretedOption()
    if isinstance(value, str):
        word.string_value = value.encode("utf-8", "surrogateescape")
    elif not isinstance(value, Word):
        word.aggregate_value = _text(value)[1:-1].strip()
    elif value.text.isdigit() and len(value.text) < 19:
        word.positive_int_value = int(value.text)
    elif value.text[:1] == "-" and value.text[1:].isdigit() and len(value.text) < 19:
        word.negative_int_value = int(value.text)
    else:
        word.identifier_value = value.text
    return word
