"""The addresses of this proxy as its clients see it: in `base_uri` of consumer instances, and in the links of v3."""

from __future__ import annotations

from urllib.parse import quote

from penstock.client.errors import BadOption
from penstock.web.call import Call
from penstock.web.options import Listen, parse_listener


class Addresses:
    def __init__(self, *, advertised: list[str], host_name: str) -> None:
        self._fixed: dict[str, str] = {}
        self._host_name = host_name
        self._listeners: tuple[Listen, ...] = ()
        for text in advertised:
            try:
                one = parse_listener(text)
            except BadOption:
                raise BadOption(f"advertised.listeners: '{text}' is not http://HOST:PORT") from None
            self._fixed.setdefault(one.scheme, str(one))

    def listening(self, listeners: tuple[Listen, ...]) -> None:
        """With the real ports, once they are known."""
        self._listeners = listeners
        if not self._fixed and self._host_name:
            for one in listeners:
                self._fixed.setdefault(one.scheme, f"{one.scheme}://{self._host_name}:{one.address.port}")

    def base(self, call: Call) -> str:
        scheme = str(call.scope.get("scheme", "http"))
        if self._fixed:
            return self._fixed.get(scheme) or next(iter(self._fixed.values()))
        host = call.header("host")
        if host and len(host) < 300 and host.isprintable() and not any(mark in host for mark in ' /\\"<>'):
            return f"{scheme}://{host}"
        return str(self._listeners[0])


def part(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="")
