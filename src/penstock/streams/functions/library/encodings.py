"""Texts and numbers from and to bytes: hex, utf8, ascii, base64."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable
from typing import Any, Final

from penstock.streams.functions import casts
from penstock.streams.functions.refusals import FunctionFailed
from penstock.streams.functions.registry import scalar

_STRING: Final = "STRING"
_NOT_BASE64: Final = re.compile(r"[^A-Za-z0-9+/_-]")


def _from_hex(text: str) -> bytes:
    if len(text) % 2 or not all(each in "0123456789abcdefABCDEF" for each in text):
        raise FunctionFailed(f"hexBinary needs to be even-length and of hexadecimal digits: {text[:40]}")
    return bytes.fromhex(text)


def _ascii_text(value: bytes) -> str:
    return value.decode("ascii", "replace")


def _utf8_text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _base64_text(value: bytes) -> str:
    return base64.b64encode(value).decode()


_TO_TEXT: Final[dict[str, Callable[[bytes], str]]] = {
    "hex": lambda value: value.hex().upper(),
    "utf8": _utf8_text,
    "ascii": _ascii_text,
    "base64": _base64_text,
}
_TO_BYTES: Final[dict[str, Callable[[str], bytes]]] = {
    "hex": _from_hex,
    "utf8": lambda text: text.encode("utf-8", "replace"),
    "ascii": lambda text: text.encode("ascii", "replace"),
    "base64": casts.decode_base64,
}


def _unknown(encoding: str) -> FunctionFailed:
    return FunctionFailed(
        f"Unknown encoding type '{encoding}'. Supported formats are 'hex', 'utf8', 'ascii', and 'base64'."
    )


@scalar(
    "TO_BYTES",
    "STRING value, STRING encoding -> BYTES",
    category=_STRING,
    about="Converts a STRING value in the specified encoding to BYTES: 'hex', 'utf8', 'ascii' or 'base64'.",
)
def to_bytes(text: str, encoding: str) -> bytes:
    convert = _TO_BYTES.get(encoding.lower())
    if convert is None:
        raise _unknown(encoding)
    return convert(text)


@scalar(
    "FROM_BYTES",
    "BYTES value, STRING encoding -> STRING",
    category=_STRING,
    about="Converts a BYTES value to STRING in the specified encoding: 'hex', 'utf8', 'ascii' or 'base64'.",
)
def from_bytes(value: bytes, encoding: str) -> str:
    convert = _TO_TEXT.get(encoding.lower())
    if convert is None:
        raise _unknown(encoding)
    return convert(value)


def _stripped_hex(text: str) -> bytes:
    """0xAB79 and X'AB79' are hex, too."""
    if text.startswith("0x"):
        text = ("0" if len(text) % 2 else "") + text[2:]
    elif len(text) >= 3 and text[0] in "xX" and text[1] == text[-1] == "'":
        text = text[2:-1]
    return _from_hex(text)


def _lenient_base64(text: str) -> bytes:
    """What is no letter of the alphabet is left out, and what is left over at the end, too."""
    letters = _NOT_BASE64.sub("", text.split("=")[0]).replace("-", "+").replace("_", "/")
    if len(letters) % 4 == 1:
        letters = letters[:-1]
    return base64.b64decode(letters + "=" * (-len(letters) % 4))


_ENCODE_FROM: Final[dict[str, Callable[[str], bytes]]] = {
    "hex": _stripped_hex,
    "utf8": _TO_BYTES["utf8"],
    "ascii": _TO_BYTES["ascii"],
    "base64": _lenient_base64,
}
_ENCODE_TO: Final[dict[str, Callable[[bytes], str]]] = {**_TO_TEXT, "hex": bytes.hex}


@scalar(
    "ENCODE",
    "STRING str, STRING inputEncoding, STRING outputEncoding -> STRING",
    category=_STRING,
    about="Takes a string in one encoding and gives it in another: hex, utf8, ascii and base64.",
)
def encode(text: str, given: str, wanted: str) -> str:
    given, wanted = given.lower(), wanted.lower()
    if given == wanted or given not in _ENCODE_FROM or wanted not in _ENCODE_TO:
        raise FunctionFailed("Supported input and output encodings are: hex, utf8, ascii and base64")
    return _ENCODE_TO[wanted](_ENCODE_FROM[given](text))


def _declare_number(name: str, kind: str, code: str, size: int) -> None:
    def run(value: bytes, order: str = "BIG_ENDIAN") -> Any:
        sign = {"BIG_ENDIAN": ">", "LITTLE_ENDIAN": "<"}.get(order.upper())
        if sign is None:
            raise FunctionFailed(
                f"Byte order must be BIG_ENDIAN or LITTLE_ENDIAN. Unknown byte order '{order}'."
            )
        if len(value) != size:
            raise FunctionFailed(f"Number of bytes must be equal to {size}, but found {len(value)}")
        return struct.unpack(sign + code, value)[0]

    about = f"Converts a BYTES value of {size} bytes to {kind}, in the byte order BIG_ENDIAN (default) or LITTLE_ENDIAN."
    signatures = (f"BYTES value -> {kind}", f"BYTES value, STRING byteOrder -> {kind}")
    scalar(name, *signatures, category="CONVERSIONS", about=about)(run)


_declare_number("INT_FROM_BYTES", "INTEGER", "i", 4)
_declare_number("BIGINT_FROM_BYTES", "BIGINT", "q", 8)
_declare_number("DOUBLE_FROM_BYTES", "DOUBLE", "d", 8)
