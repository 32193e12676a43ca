"""The functions about URLs: what is no URL gives NULL."""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import quote_plus, unquote_to_bytes

from penstock.streams.functions.refusals import FunctionFailed
from penstock.streams.functions.registry import scalar

_URL: Final = "URL"
_PARTS: Final = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(//[^/?#]*)?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL
)
_SERVER: Final = re.compile(r"(?:[^@\[\]]*@)?(\[[0-9A-Fa-f:.%\w]+\]|[^:@\[\]]*)(?::(\d*))?", re.ASCII)
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST: Final = re.compile(
    rf"(?:{_LABEL}\.)*[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.?|\d{{1,3}}(?:\.\d{{1,3}}){{3}}", re.ASCII
)
_BAD: Final = re.compile(r'[\x00-\x20\x7f-\xa0"<>\\^`{|}]|%(?![0-9A-Fa-f]{2})')
_ESCAPES: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")


class Parts(NamedTuple):
    scheme: str | None
    host: str | None
    port: int | None
    path: str | None
    query: str | None
    fragment: str | None


def _decoded(text: str | None) -> str | None:
    if text is None or "%" not in text:
        return text
    return _ESCAPES.sub(lambda found: unquote_to_bytes(found.group()).decode("utf-8", "replace"), text)


def parsed(url: str) -> Parts:
    """As java.net.URI takes it: strict about characters, and a host is a name, or an address."""
    found = _PARTS.fullmatch(url)
    if found is None or not url or _BAD.search(url) is not None:
        raise FunctionFailed(f"URL input has invalid syntax: {url[:200]}")
    scheme, authority, path, query, fragment = found.groups()
    is_opaque = scheme is not None and authority is None and not path.startswith("/")
    problems = ("[" in path or "]" in path) and not is_opaque
    problems = problems or (scheme is None and authority is None and ":" in path.split("/")[0])
    problems = (
        problems or (is_opaque and not path and query is None) or (fragment is not None and "#" in fragment)
    )
    problems = problems or (authority == "//" and not path and query is None and fragment is None)
    if problems:
        raise FunctionFailed(f"URL input has invalid syntax: {url[:200]}")
    if is_opaque:
        return Parts(scheme, None, None, None, None, _decoded(fragment))
    host, port = _host_and_port(authority)
    if host is None and authority is not None and ("[" in authority or "]" in authority):
        raise FunctionFailed(f"URL input has invalid syntax: {url[:200]}")
    return Parts(scheme, host, port, _decoded(path), _decoded(query), _decoded(fragment))


def _host_and_port(authority: str | None) -> tuple[str | None, int | None]:
    """An authority that is no host and port is kept as it is, and has no parts."""
    found = _SERVER.fullmatch(authority[2:]) if authority is not None else None
    if found is None:
        return None, None
    host, port = found.groups()
    if not host.startswith("[") and _HOST.fullmatch(host) is None:
        return None, None
    return host, int(port) if port and int(port) < 2**31 else None


@scalar(
    "URL_EXTRACT_PROTOCOL", "STRING input -> STRING", category=_URL, about="Extracts the protocol from a URL."
)
def url_protocol(url: str) -> str | None:
    return parsed(url).scheme


@scalar("URL_EXTRACT_HOST", "STRING input -> STRING", category=_URL, about="Extracts the host from a URL.")
def url_host(url: str) -> str | None:
    return parsed(url).host


@scalar(
    "URL_EXTRACT_PORT",
    "STRING input -> INTEGER",
    category=_URL,
    about="Extracts the port from a URL; NULL if it has none.",
)
def url_port(url: str) -> int | None:
    return parsed(url).port


@scalar("URL_EXTRACT_PATH", "STRING input -> STRING", category=_URL, about="Extracts the path from a URL.")
def url_path(url: str) -> str | None:
    return parsed(url).path


@scalar(
    "URL_EXTRACT_QUERY",
    "STRING input -> STRING",
    category=_URL,
    about="Extracts the query from a URL, decoded.",
)
def url_query(url: str) -> str | None:
    return parsed(url).query


@scalar(
    "URL_EXTRACT_FRAGMENT",
    "STRING input -> STRING",
    category=_URL,
    about="Extracts the fragment from a URL, decoded.",
)
def url_fragment(url: str) -> str | None:
    return parsed(url).fragment


@scalar(
    "URL_EXTRACT_PARAMETER",
    "STRING input, STRING paramToFind -> STRING",
    category=_URL,
    about="Extracts a parameter with a specified name from a URL.",
)
def url_parameter(url: str, name: str) -> str | None:
    query = parsed(url).query
    for parameter in [] if query is None else query.split("&"):
        key, _, value = parameter.partition("=")
        if key == name:
            return value
    return None


@scalar(
    "URL_DECODE_PARAM",
    "STRING input -> STRING",
    category=_URL,
    about="Decodes a value of application/x-www-form-urlencoded.",
)
def url_decode(text: str) -> str:
    if re.search(r"%(?![0-9A-Fa-f]{2})", text) is not None:
        raise FunctionFailed(f"URLDecoder: Illegal hex characters in escape (%) pattern: {text[:200]}")
    return _decoded(text.replace("+", " ")) or ""


@scalar(
    "URL_ENCODE_PARAM",
    "STRING input -> STRING",
    category=_URL,
    about="Encodes a value as application/x-www-form-urlencoded.",
)
def url_encode(text: str) -> str:
    return quote_plus(text, safe="-_.*", errors="replace").replace("~", "%7E")
