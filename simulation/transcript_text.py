"""The text of transcripts: values as they are written, read into plain Python, compared and written back.

    fields  a=1 b="two words" c=[x y] d={e=5 f=null} g=0x00ff h=subscription(orders,payments)
    value   a word, a "quoted" text, [values], {fields}, or a short form name(…) for bytes

A word has no type of its own: `build` gives it that of the field it is for, `matches` that of what it is compared
with. So `1` is a number for a generation and a text for a member id.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from penstock.model.errors import ErrorCode
from penstock.wire.schema import Struct

ShortForms = Mapping[str, Callable[[str], bytes]]

_TOKEN: Final = re.compile(
    r'\s*(?:("(?:[^"\\]|\\.)*")|([\w.]+)\(([^()]*)\)|([\[\]{}=])|([^\s\[\]{}()="]+))\s*'
)
_COMMENT: Final = re.compile(r'^((?:[^"#]|"(?:[^"\\]|\\.)*"|(?<=\S)#)*?)\s*(?:(?:^|(?<=\s))#.*)?$')
_PLAIN_WORD: Final = re.compile(r'[^\s\[\]{}()="#]+')


def without_comment(line: str) -> str:
    """A `#` begins a comment at the start of a line or after a space, outside of quotes."""
    found = _COMMENT.match(line)
    return line if found is None else found[1].rstrip()


class TextReader:
    """Reads the words, values and fields of one line."""

    def __init__(self, text: str, short_forms: ShortForms) -> None:
        self._text = text
        self._short_forms = short_forms
        self._at = 0
        self._token: re.Match[str] | None = None
        self._advance()

    def _advance(self) -> None:
        self._token = _TOKEN.match(self._text, self._at) if self._at < len(self._text) else None
        if self._token is None and self._text[self._at :].strip():
            raise ValueError(f"cannot read {self._text[self._at :]!r}")
        self._at = self._token.end() if self._token is not None else len(self._text)

    def _sign(self) -> str | None:
        return self._token[4] if self._token is not None else None

    @property
    def is_at_end(self) -> bool:
        return self._token is None

    def word(self) -> str:
        value = self.value()
        if not isinstance(value, str):
            raise ValueError(f"a word is wanted in {self._text!r}, not {value!r}")
        return value

    def value(self) -> Any:
        token = self._token
        if token is None:
            raise ValueError(f"a value is missing at the end of {self._text!r}")
        self._advance()
        if token[1] is not None:
            return token[1][1:-1].replace('\\"', '"').replace("\\\\", "\\")
        if token[2] is not None:
            if token[2] not in self._short_forms:
                raise ValueError(f"{token[2]}(…) is no short form; there are {sorted(self._short_forms)}")
            return self._short_forms[token[2]](token[3])
        if token[4] == "[":
            items = []
            while self._sign() != "]":
                items.append(self.value())
            self._advance()
            return items
        if token[4] == "{":
            fields = self.fields(until="}")
            self._advance()
            return fields
        if token[4] is not None:
            raise ValueError(f"{token[4]!r} is out of place in {self._text!r}")
        return bytes.fromhex(token[5][2:]) if token[5].startswith("0x") else token[5]

    def fields(self, until: str | None = None) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self.is_at_end and (until is None or self._sign() != until):
            name = self.word()
            if self._sign() != "=":
                raise ValueError(f"{name!r} has no value in {self._text!r}")
            self._advance()
            found[name] = self.value()
        if until is not None and self.is_at_end:
            raise ValueError(f"{until!r} is missing in {self._text!r}")
        return found


def build(struct: type[Struct], fields: Mapping[str, Any]) -> Struct:
    """A message from its fields; those that are absent have Kafka's defaults."""
    kinds = {field[0]: (field[1], field[6]) for field in struct.FIELDS}
    values = {}
    for name, value in fields.items():
        name = "error_code" if name == "error" else name
        if name not in kinds:
            raise ValueError(f"{struct.__name__} has no field {name}; it has {', '.join(kinds)}")
        values[name] = _typed(value, *kinds[name])
    return struct(**values)


def _typed(value: Any, kind: str, struct: type[Struct] | None) -> Any:
    if value == "null":
        return None
    if kind.startswith("[]"):
        return [_typed(item, kind[2:], struct) for item in value]
    if kind == "struct":
        assert struct is not None
        return build(struct, value)
    if kind == "bool":
        return _BOOLEANS[value]
    if kind.startswith(("int", "uint")):
        return int(value) if not hasattr(ErrorCode, value) else int(ErrorCode[value])
    if kind in ("bytes", "records", "uuid"):
        raw = value.encode() if isinstance(value, str) else value
        return raw.ljust(16, b"\0") if kind == "uuid" else raw
    return value


_BOOLEANS: Final = {"true": True, "false": False}


def plain(value: object, *, sparse: bool = False) -> Any:
    """Structs as dicts, sequences as lists, `error_code` as the name of the error. Sparse: without what is as by
    default."""
    if isinstance(value, Struct):
        fields: dict[str, Any] = {}
        for name, _, _, _, _, default, _ in value.FIELDS:
            got = getattr(value, name)
            if name == "error_code":
                fields["error"] = ErrorCode(got).name
            elif not sparse or plain(got) != plain(default):
                fields[name] = plain(got, sparse=sparse)
        if sparse and fields.get("error") == "NONE":
            del fields["error"]
        return fields
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict(), sparse=sparse)
    if isinstance(value, Mapping):
        return {str(name): plain(item, sparse=sparse) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        return [plain(item, sparse=sparse) for item in value]
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, set | frozenset):
        return sorted(plain(item, sparse=sparse) for item in value)
    return value


def matches(expected: Any, got: Any) -> bool:
    """Whether what is written says this of what came: of a struct, as many fields as are written; of a list, all."""
    if isinstance(expected, dict):
        if not isinstance(got, dict) or not expected.keys() <= got.keys() | {"error"}:
            return False
        return all(matches(value, got.get(name, "NONE")) for name, value in expected.items())
    if isinstance(expected, list):
        if not isinstance(got, list) or len(expected) != len(got):
            return False
        return all(matches(*pair) for pair in zip(expected, got, strict=True))
    if isinstance(expected, bytes) or isinstance(got, bytes):
        raw = expected.encode() if isinstance(expected, str) else expected
        return bool(raw == got)
    if got is None or isinstance(got, bool):
        return bool(expected == str(got).lower().replace("none", "null"))
    return bool(expected == str(got))


def write_fields(fields: Mapping[str, Any], show_bytes: Callable[[bytes], str]) -> str:
    return " ".join(f"{write_word(name)}={write_value(value, show_bytes)}" for name, value in fields.items())


def write_value(value: Any, show_bytes: Callable[[bytes], str]) -> str:
    if isinstance(value, dict):
        return "{" + write_fields(value, show_bytes) + "}"
    if isinstance(value, list):
        return "[" + " ".join(write_value(item, show_bytes) for item in value) + "]"
    if isinstance(value, bytes):
        return show_bytes(value)
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    return write_word(str(value))


def write_word(text: str) -> str:
    if _PLAIN_WORD.fullmatch(text) and not text.startswith("0x"):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
