"""GSSAPI: logins by Kerberos tickets, with the system's library (MIT's libgssapi_krb5) by way of ctypes.

`Acceptor` has a service's key and takes clients in, each by an `Acceptance`; `prove` is the client's side. Both end as RFC 4752
has it: the server offers security layers, the client takes none (Kafka has TLS for that) and may say as whom it wants to act.

All of it blocks: it reads files, and a client asks the key server. Objects may be made and used in any thread, by one at a time;
an `Acceptor` by several.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from typing import Any, Final

from penstock.security.kerberos import TicketSource

LIBRARY: Final = "libgssapi_krb5.so.2"
PACKAGE: Final = "libgssapi-krb5-2"
MAX_STEPS: Final = 4
"""Of an exchange before it is complete; Kerberos needs two."""
_INITIATE: Final = 1
_ACCEPT: Final = 2
_CONTINUE: Final = 1
_MUTUAL_AND_INTEGRITY: Final = 2 | 32
_INDEFINITE: Final = 0xFFFFFFFF
_GSS_CODE: Final = 1
_MECHANISM_CODE: Final = 2
_NO_LAYER: Final = b"\x01\x00\x00\x00"
"""No security layer, and so no size of its messages."""


class GssFailed(Exception):
    """The text is one line, and has no secret in it."""


class _Buffer(ctypes.Structure):
    _fields_ = (("length", c_size_t), ("value", c_void_p))


class _Oid(ctypes.Structure):
    _fields_ = (("length", c_uint32), ("elements", c_char_p))


class _OidSet(ctypes.Structure):
    _fields_ = (("count", c_size_t), ("elements", POINTER(_Oid)))


class _Pair(ctypes.Structure):
    _fields_ = (("key", c_char_p), ("value", c_char_p))


class _Pairs(ctypes.Structure):
    _fields_ = (("count", c_uint32), ("elements", POINTER(_Pair)))


def _oid(text: str) -> _Oid:
    elements = bytes.fromhex(text)
    return _Oid(len(elements), elements)


_KERBEROS: Final = _oid("2a864886f712010202")
_HOSTBASED_SERVICE: Final = _oid("2a864886f71201020104")
_PRINCIPAL: Final = _oid("2a864886f71201020201")
_library: ctypes.CDLL | None = None


def library() -> ctypes.CDLL:
    global _library
    if _library is None:
        try:
            loaded = ctypes.CDLL(LIBRARY)
        except OSError:
            raise GssFailed(
                f"Kerberos' library is missing ({LIBRARY}); on Debian: apt-get install {PACKAGE}"
            ) from None
        for name in ("gss_accept_sec_context", "gss_init_sec_context", "gss_acquire_cred_from"):
            getattr(loaded, name).restype = c_uint32
        _library = loaded
    return _library


def _call(name: str, *arguments: Any) -> int:
    """What it returns; GssFailed where that is an error."""
    minor = c_uint32()
    major = int(getattr(library(), name)(byref(minor), *arguments)) & 0xFFFFFFFF
    if major & 0xFFFF0000:
        raise GssFailed(_reason(major, minor.value))
    return major


def _reason(major: int, minor: int) -> str:
    texts = [_status(minor, _MECHANISM_CODE)] if minor else []
    text = "; ".join(filter(None, texts)) or _status(major, _GSS_CODE)
    return " ".join(text.split())[:300]


def _status(code: int, kind: int) -> str:
    minor, more, text = c_uint32(), c_uint32(), _Buffer()
    library().gss_display_status(
        byref(minor), c_uint32(code), c_int(kind), byref(_KERBEROS), byref(more), byref(text)
    )
    return _taken(text).decode(errors="replace")


def _taken(buffer: _Buffer) -> bytes:
    """The bytes of what the library has given, which is given back."""
    content = ctypes.string_at(buffer.value, buffer.length) if buffer.length else b""
    library().gss_release_buffer(byref(c_uint32()), byref(buffer))
    return content


def _given(content: bytes) -> _Buffer:
    """The buffer keeps the bytes alive."""
    buffer = _Buffer(len(content), None)
    buffer.kept = ctypes.create_string_buffer(content, max(len(content), 1))
    buffer.value = ctypes.addressof(buffer.kept)
    return buffer


class _Name:
    def __init__(self, text: str, kind: _Oid) -> None:
        self.handle = c_void_p()
        given = _given(text.encode())
        _call("gss_import_name", byref(given), byref(kind), byref(self.handle))

    def __del__(self) -> None:
        if self.handle and _library is not None:
            _library.gss_release_name(byref(c_uint32()), byref(self.handle))


class _Credential:
    def __init__(self, principal: str, usage: int, store: dict[str, str]) -> None:
        self.handle = c_void_p()
        name = _Name(principal, _PRINCIPAL) if principal else None
        pairs = (_Pair * len(store))(
            *[_Pair(key.encode(), os.fsencode(value)) for key, value in store.items()]
        )
        chosen = _Pairs(len(store), pairs)
        mechanisms = _OidSet(1, ctypes.pointer(_KERBEROS))
        _call(
            "gss_acquire_cred_from",
            name.handle if name is not None else None,
            c_uint32(_INDEFINITE),
            byref(mechanisms),
            c_int(usage),
            byref(chosen) if store else None,
            byref(self.handle),
            None,
            None,
        )

    def __del__(self) -> None:
        if self.handle and _library is not None:
            _library.gss_release_cred(byref(c_uint32()), byref(self.handle))


class _Context:
    def __init__(self) -> None:
        self.handle = c_void_p()

    def wrap(self, text: bytes) -> bytes:
        given, out = _given(text), _Buffer()
        _call("gss_wrap", self.handle, c_int(0), c_uint32(0), byref(given), None, byref(out))
        return _taken(out)

    def unwrap(self, token: bytes) -> bytes:
        given, out = _given(token), _Buffer()
        _call("gss_unwrap", self.handle, byref(given), byref(out), None, None)
        return _taken(out)

    def __del__(self) -> None:
        if self.handle and _library is not None:
            _library.gss_delete_sec_context(byref(c_uint32()), byref(self.handle), None)


def own_realm() -> str:
    """The default realm of this machine's configuration; empty where it has none."""
    library()
    kerberos = ctypes.CDLL("libkrb5.so.3")
    context, realm = c_void_p(), c_char_p()
    if kerberos.krb5_init_context(byref(context)):
        return ""
    try:
        if kerberos.krb5_get_default_realm(context, byref(realm)) or realm.value is None:
            return ""
        found = realm.value.decode()
        kerberos.krb5_free_default_realm(context, realm)
        return found
    finally:
        kerberos.krb5_free_context(context)


class Acceptor:
    def __init__(self, source: TicketSource) -> None:
        """GssFailed where the keytab cannot be read, or has not the principal's key."""
        self.credential = _Credential(source.principal, _ACCEPT, {"keytab": f"FILE:{source.keytab}"})


class Acceptance:
    """One client's attempt. `name` is set with the last step: `ana@ACME`."""

    def __init__(self, acceptor: Acceptor) -> None:
        self._acceptor = acceptor
        self._context = _Context()
        self._client = ""
        self._steps = 0
        # A method of the class, not of this object, which would keep itself and the library's memory until the next collection.
        self._next: Callable[[Acceptance, bytes], bytes] = Acceptance._accept
        self.name: str | None = None

    def step(self, token: bytes) -> bytes:
        """The answer; GssFailed."""
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise GssFailed("the exchange has too many steps")
        return self._next(self, token)

    def _accept(self, token: bytes) -> bytes:
        given, out, client = _given(token), _Buffer(), c_void_p()
        try:
            major = _call(
                "gss_accept_sec_context",
                byref(self._context.handle),
                self._acceptor.credential.handle,
                byref(given),
                None,
                byref(client),
                None,
                byref(out),
                None,
                None,
                None,
            )
            answer = _taken(out)
            if major & _CONTINUE:
                return answer
            self._client = _display(client)
        finally:
            _taken(out)  # where it is refused there may be an answer, too
            if client:
                library().gss_release_name(byref(c_uint32()), byref(client))
        self._next = Acceptance._offer
        return answer or self._offer(b"")

    def _offer(self, token: bytes) -> bytes:
        if token:
            raise GssFailed("the client says more than its part")
        self._next = Acceptance._agree
        return self._context.wrap(_NO_LAYER)

    def _agree(self, token: bytes) -> bytes:
        said = self._context.unwrap(token)
        if said[:4] != _NO_LAYER:
            raise GssFailed("the client asks for a security layer, which is not offered")
        wanted = said[4:].rstrip(b"\0").decode(errors="replace")
        if wanted not in ("", self._client):
            raise GssFailed(f"{self._client[:100]} asks to act as somebody else")
        self._next = Acceptance._over
        self.name = self._client
        return b""

    def _over(self, token: bytes) -> bytes:
        raise GssFailed("the exchange is over")


def _display(name: c_void_p) -> str:
    out = _Buffer()
    _call("gss_display_name", name, byref(out), None)
    return _taken(out).decode(errors="replace")


def prove(source: TicketSource, host: str, say: Callable[[bytes], bytes]) -> None:
    """To the service on `host`. `say` sends a token and returns the answer. GssFailed."""
    try:
        _prove(source, host, say)
    except GssFailed as error:
        whose = f" of {source.principal}" if source.principal else ""
        place = source.keytab or source.cache or "the ticket cache (kinit)"
        raise GssFailed(f"the ticket{whose} from {place} for {source.service}/{host}: {error}") from None


def _prove(source: TicketSource, host: str, say: Callable[[bytes], bytes]) -> None:
    target = _Name(f"{source.service}@{host}", _HOSTBASED_SERVICE)
    store = {"ccache": source.cache} if source.cache else {}
    if source.keytab:
        cache = f"MEMORY:penstock {source.principal} {source.keytab}"
        store = {"client_keytab": f"FILE:{source.keytab}", "ccache": cache}
    credential = _Credential(source.principal, _INITIATE, store)
    context = _Context()
    answer = b""
    for _ in range(MAX_STEPS):
        given, out = _given(answer), _Buffer()
        major = _call(
            "gss_init_sec_context",
            credential.handle,
            byref(context.handle),
            target.handle,
            byref(_KERBEROS),
            c_uint32(_MUTUAL_AND_INTEGRITY),
            c_uint32(0),
            None,
            byref(given),
            None,
            byref(out),
            None,
            None,
        )
        answer = say(_taken(out))
        if not major & _CONTINUE:
            break
    else:
        raise GssFailed("the exchange has too many steps")
    offer = context.unwrap(answer)
    if len(offer) != 4 or not offer[0] & _NO_LAYER[0]:
        raise GssFailed("it wants a security layer, which Kafka does not have")
    say(context.wrap(_NO_LAYER))
