"""How a reference is completed by the address of the schema it stands in (RFC 3986)."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote, urljoin

HOME: Final = "mem://input/"
"""Where a schema stands that does not say, as in Confluent's registry."""


def joined(base: str, reference: str) -> str:
    """Also for schemes that Python's urljoin does not take apart. ValueError for what is no reference at all."""
    if reference.startswith("#"):
        return base.partition("#")[0] + reference
    scheme, separator, rest = base.partition("://")
    if not separator:
        return reference if ":" in reference.partition("/")[0] else base.partition("#")[0] + reference
    head = reference.partition("/")[0].partition("?")[0].partition("#")[0]
    if ":" in head:
        return reference
    complete = urljoin(f"http://{rest}", reference)
    return scheme + complete.removeprefix("http")


def parted(uri: str) -> tuple[str, str]:
    """The address, and what follows the #."""
    address, _, fragment = uri.partition("#")
    return address, fragment


def pointer_tokens(fragment: str) -> list[str]:
    """Of a JSON pointer after a #."""
    return [token.replace("~1", "/").replace("~0", "~") for token in unquote(fragment).split("/")[1:]]
