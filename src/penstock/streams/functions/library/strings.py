"""Texts: cutting, joining, searching, padding, masking. What also works on bytes does so by bytes."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable
from typing import Any, Final, TypeVar

from penstock.streams.functions.refusals import FunctionFailed
from penstock.streams.functions.registry import scalar

Sequence = TypeVar("Sequence", str, bytes)
_STRING: Final = "STRING"
MAX_LENGTH: Final = 16 * 1024 * 1024
_BLANKS: Final = "".join(map(chr, range(33)))
_WORD: Final = re.compile(r"[^ \t\n\x0b\f\r]+[ \t\n\x0b\f\r]*")
_ESCAPE: Final = re.compile(r"\\(?:u+([0-9a-fA-F]{4})|([0-7]{1,3})|(.))", re.DOTALL)
_PLAIN_ESCAPES: Final = {"b": "\b", "n": "\n", "t": "\t", "f": "\f", "r": "\r"}


@scalar(
    "LCASE",
    "STRING input -> STRING",
    category=_STRING,
    about="Returns a lower-case version of the input string.",
)
def lcase(text: str) -> str:
    return text.lower()


@scalar(
    "UCASE",
    "STRING input -> STRING",
    category=_STRING,
    about="Returns an upper-case version of the input string.",
)
def ucase(text: str) -> str:
    return text.upper()


@scalar(
    "TRIM",
    "STRING input -> STRING",
    category=_STRING,
    about="Trim the spaces from the beginning and end of a string.",
)
def trim(text: str) -> str:
    return text.strip(_BLANKS)


@scalar(
    "LEN",
    "STRING input -> INTEGER",
    "BYTES input -> INTEGER",
    category=_STRING,
    about="Returns the length of the input string or byte array.",
)
def length(value: str | bytes) -> int:
    return len(value)


@scalar(
    "INITCAP",
    "STRING str -> STRING",
    category=_STRING,
    about="Returns the string with the first letter of each word capitalized and the rest lowercased.",
)
def initcap(text: str) -> str:
    words: list[str] = _WORD.findall(text.lower())
    return "".join(word[:1].upper() + word[1:] for word in words)


@scalar(
    "REPLACE",
    "STRING str, STRING oldStr, STRING newStr -> STRING",
    category=_STRING,
    about="Replaces all occurrences of a substring in a string with a new substring.",
)
def replace(text: str, old: str, new: str) -> str:
    if (
        old in text
        and len(text) * max(1, len(new)) > MAX_LENGTH
        and len(text) + text.count(old) * len(new) > MAX_LENGTH
    ):
        raise FunctionFailed(f"The result of REPLACE is longer than {MAX_LENGTH}")
    return text.replace(old, new)


def _start(size: int, position: int) -> int:
    return max(size + position, 0) if position < 0 else max(min(position - 1, size), 0)


@scalar(
    "SUBSTRING",
    *(f"{kind} value, INTEGER pos -> {kind}" for kind in ("STRING", "BYTES")),
    category=_STRING,
    about="Returns the portion of a string or bytes from a one-based position on, of a length if there is one.",
)
@scalar(
    "SUBSTRING", *(f"{kind} value, INTEGER pos, INTEGER length -> {kind}" for kind in ("STRING", "BYTES"))
)
def substring(value: Sequence, position: int, how_long: int | None = None) -> Sequence:
    start = _start(len(value), position)
    if how_long is None:
        return value[start:]
    return value[start : max(min(start + how_long, len(value)), start)]


@scalar(
    "INSTR",
    "STRING str, STRING substring -> INTEGER",
    "STRING str, STRING substring, INTEGER position -> INTEGER",
    "STRING str, STRING substring, INTEGER position, INTEGER occurrence -> INTEGER",
    category=_STRING,
    nulls="own",
    about="Returns the position of a substring in a string, counted from 1; 0 if it is not there.",
)
def instr(
    text: str | None, part: str | None, position: int | None = 1, occurrence: int | None = 1
) -> int | None:
    if position is None or occurrence is None:
        return None
    if text is None or part is None or abs(position) > len(text):
        return 0
    if position < 0:
        at = _ordinal(text[::-1][-position - 1 :], part[::-1], occurrence)
        return 0 if at < 0 else len(text) + position - at - len(part) + 2
    rest = text[position - 1 :] if position else text[-1:]
    at = _ordinal(rest, part, occurrence)
    return 0 if at < 0 else at + position


def _ordinal(text: str, part: str, occurrence: int) -> int:
    """Where the n-th occurrence begins; they may overlap."""
    if occurrence <= 0:
        return -1
    if not part:
        return 0
    at = -1
    for _ in range(min(occurrence, len(text) + 1)):
        at = text.find(part, at + 1)
        if at < 0:
            return -1
    return at if occurrence <= len(text) else -1


def _joined(kind: str) -> None:
    empty: Any = "" if kind == "STRING" else b""

    @scalar(
        "CONCAT",
        f"{kind}... inputs -> {kind}",
        category=_STRING,
        nulls="own",
        about="Concatenate two or more values; NULL is empty.",
    )
    def concat(*values: Any) -> Any:
        return empty.join(value for value in values if value is not None)

    @scalar(
        "CONCAT_WS",
        f"{kind}... inputs -> {kind}",
        category=_STRING,
        nulls="own",
        about="Concatenates values with a separator between them, which is the first argument. NULLs are left out.",
    )
    def concat_with(*values: Any) -> Any:
        if len(values) < 2:
            raise FunctionFailed("Function Concat_WS expects at least two input arguments.")
        separator = values[0]
        if separator is None:
            return None
        return separator.join(value for value in values[1:] if value is not None)


_joined("STRING")
_joined("BYTES")


def _padding(value: Sequence, size: int, pad: Sequence) -> Sequence | None:
    """What is missing up to the length; None when it cannot be padded."""
    if size < 0 or not pad:
        return None
    if size > MAX_LENGTH:
        raise FunctionFailed(f"A target length of {size} is more than {MAX_LENGTH}")
    missing = max(size - len(value), 0)
    return (pad * (missing // len(pad) + 1))[:missing]


_PADDED: Final = tuple(
    f"{kind} input, INTEGER targetLen, {kind} padding -> {kind}" for kind in ("STRING", "BYTES")
)


@scalar(
    "LPAD",
    *_PADDED,
    category=_STRING,
    about="Pads at the beginning until the target length; what is longer is cut.",
)
def lpad(value: Sequence, size: int, pad: Sequence) -> Sequence | None:
    missing = _padding(value, size, pad)
    return None if missing is None else (missing + value)[:size]


@scalar(
    "RPAD",
    *_PADDED,
    category=_STRING,
    about="Pads at the end until the target length; what is longer is cut.",
)
def rpad(value: Sequence, size: int, pad: Sequence) -> Sequence | None:
    missing = _padding(value, size, pad)
    return None if missing is None else (value + missing)[:size]


@scalar(
    "SPLIT",
    "STRING string, STRING delimiter -> ARRAY<STRING>",
    category=_STRING,
    about="Splits a string or bytes into an array by a delimiter; an empty one splits into characters or bytes.",
)
def split(text: str, delimiter: str) -> list[str]:
    if delimiter:
        return text.split(delimiter)
    return list(text) or [""]


@scalar("SPLIT", "BYTES bytes, BYTES delimiter -> ARRAY<BYTES>")
def split_bytes(value: bytes, delimiter: bytes) -> list[bytes]:
    if not value:
        return [b""]
    if delimiter:
        return value.split(delimiter)
    return [value[at : at + 1] for at in range(len(value))]


@scalar(
    "SPLIT_TO_MAP",
    "STRING input, STRING entryDelimiter, STRING kvDelimiter -> MAP<STRING, STRING>",
    category=_STRING,
    about="Splits a string into key-value pairs and creates a map from them. Of equal keys the last one counts.",
)
def split_to_map(text: str, between_entries: str, between_parts: str) -> dict[str, str] | None:
    if not between_entries or not between_parts or between_entries == between_parts:
        return None
    found: dict[str, str] = {}
    for entry in text.split(between_entries):
        if between_parts in entry:
            key, value = entry.split(between_parts, 2)[:2]
            found[key] = value
    return found


@scalar(
    "CHR",
    "INTEGER decimalCode -> STRING",
    category=_STRING,
    about="Returns a single-character string for a Unicode code-point.",
)
def chr_of_code(code: int) -> str | None:
    if not 0 <= code <= 0x10FFFF:
        return None
    return "?" if 0xD800 <= code <= 0xDFFF else chr(code)


@scalar("CHR", "STRING utf16Code -> STRING")
def chr_of_text(code: str) -> str | None:
    if len(code) < 6 or not code.startswith("\\u"):
        return None
    plain = _ESCAPE.sub(_unescaped, code)
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _unescaped(match: re.Match[str]) -> str:
    unit, octal, character = match.groups()
    if unit:
        return chr(int(unit, 16))
    if octal:
        return chr(int(octal, 8))
    return _PLAIN_ESCAPES.get(character, character)


@scalar("MD5", "STRING s -> STRING", category=_STRING, about="Returns the hex-encoded md5 hash of a string.")
def md5(text: str) -> str:
    return hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


@scalar(
    "ELT",
    "INTEGER n, STRING... args -> STRING",
    category=_STRING,
    nulls="own",
    about="Returns the Nth element of the list of strings, counted from 1. NULL if there is none.",
)
def elt(number: int | None, *values: str | None) -> str | None:
    return values[number - 1] if number is not None and 1 <= number <= len(values) else None


@scalar(
    "FIELD",
    "STRING str, STRING... args -> INTEGER",
    category=_STRING,
    nulls="own",
    about="Returns the position of str in args, counted from 1, or 0 if it is not there or NULL.",
)
def field(text: str | None, *values: str | None) -> int:
    return next((at for at, each in enumerate(values, 1) if text is not None and each == text), 0)


_DEFAULT_MASKS: Final = ("X", "x", "n", "-")
_CATEGORIES: Final = {"Lu": 0, "Ll": 1, "Nd": 2}


def _masker(masks: tuple[str | None, ...]) -> Callable[[str], str]:
    for each in masks:
        if each is not None and len(each) != 1:
            raise FunctionFailed(f"Invalid mask character. Must be only single character, but was '{each}'")
    chosen = masks or _DEFAULT_MASKS

    def mask(text: str) -> str:
        return "".join(chosen[_CATEGORIES.get(unicodedata.category(each), 3)] or each for each in text)

    return mask


def _declare_mask(name: str, about: str, parts: Callable[[int, int], tuple[int, int]] | None) -> None:
    """`parts(length, n)` says from where to where is masked; None: all of it."""
    count = "" if parts is None else ", INTEGER numChars"
    rules = ", STRING upper, STRING lower, STRING digit, STRING other"

    def run(text: str | None, *rest: Any) -> str | None:
        number, masks = (0, rest) if parts is None else (rest[0], rest[1:])
        if number is None:
            return None
        if number < 0:
            raise FunctionFailed(
                f"function {name.lower()} requires a non-negative number of characters to mask or skip"
            )
        mask = _masker(masks)
        if text is None:
            return None
        start, end = (0, len(text)) if parts is None else parts(len(text), number)
        return text[:start] + mask(text[start:end]) + text[end:]

    scalar(
        name,
        f"STRING input{count} -> STRING",
        f"STRING input{count}{rules} -> STRING",
        category=_STRING,
        nulls="own",
        about=about,
    )(run)


_RULES = "Upper-case letters become 'X', lower-case ones 'x', digits 'n', all else '-'."
_declare_mask("MASK", f"Returns a masked version of the input string. {_RULES}", None)
_declare_mask(
    "MASK_KEEP_LEFT", f"Masks all but the first n characters. {_RULES}", lambda size, n: (min(n, size), size)
)
_declare_mask(
    "MASK_KEEP_RIGHT", f"Masks all but the last n characters. {_RULES}", lambda size, n: (0, max(0, size - n))
)
_declare_mask("MASK_LEFT", f"Masks the first n characters. {_RULES}", lambda size, n: (0, min(n, size)))
_declare_mask(
    "MASK_RIGHT", f"Masks the last n characters. {_RULES}", lambda size, n: (max(0, size - n), size)
)
