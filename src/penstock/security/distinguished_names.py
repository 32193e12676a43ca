"""The name in a certificate, as Java writes it: it becomes the client's principal, so rules of Kafka's must find it.

    C=DE, O=Acme, CN=alice, as the certificate has them     →  CN=alice,O=Acme,C=DE

The most specific part comes first (RFC 2253). A part whose type has no short name there is its number and its value in DER, and
not the text: `1.2.840.113549.1.9.1=#1603614062` is the e-mail address a@b. So no value can look like another part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

_SHORT_NAMES: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_TEXT_TAGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString and BMPString: Java reads the bytes of all as UTF-8."""
_ESCAPED: Final = ',=+<>#;"\\'
_BLANK: Final = " \r"


class _Value(NamedTuple):
    tag: int
    content: bytes
    encoded: bytes


def name_as_java_writes_it(encoded: bytes) -> str:
    """`encoded` is the Name in DER. ValueError where it cannot be read."""
    (name,) = _values(encoded)
    parts = [
        "+".join(_part(attribute.content) for attribute in _values(part.content))
        for part in _values(name.content)
    ]
    return ",".join(reversed(parts))


def _part(encoded: bytes) -> str:
    kind, value = _values(encoded)
    number = _dotted(kind.content)
    short = _SHORT_NAMES.get(number)
    if short is None or value.tag not in _TEXT_TAGS:
        return f"{short or number}=#{value.encoded.hex()}"
    return f"{short}={_escaped(value.content.decode(errors='replace'))}"


def _escaped(text: str) -> str:
    inner = text.strip(_BLANK)
    start = text.find(inner) if inner else len(text)
    leading, trailing = text[:start], text[start + len(inner) :]
    marked = "".join(f"\\{each}" if each in _ESCAPED else each for each in inner).replace("\0", "\\00")
    return "".join(f"\\{each}" for each in leading) + marked + "".join(f"\\{each}" for each in trailing)


def _values(data: bytes) -> Iterator[_Value]:
    position = 0
    while position < len(data):
        header = data[position : position + 2]
        if len(header) < 2:
            raise ValueError("a certificate's name ends too early")
        size, start = header[1], position + 2
        if size & 0x80:
            length = size & 0x7F
            size = int.from_bytes(data[start : start + length], "big")
            start += length
        end = start + size
        if end > len(data):
            raise ValueError("a certificate's name ends too early")
        yield _Value(header[0], data[start:end], data[position:end])
        position = end


def _dotted(encoded: bytes) -> str:
    """1.2.840 for the bytes of an OBJECT IDENTIFIER."""
    numbers, number = [], 0
    for byte in encoded:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2) if numbers else 0
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]] if numbers else []))
