"""The login at ZooKeeper by SASL: DIGEST-MD5 (RFC 2831), as ZooKeeper's `DigestLoginModule` takes it.

    us:        an empty token                                        who are you?
    ZooKeeper: realm="zk-sasl-md5",nonce="…",algorithm=md5-sess,…    its nonce
    us:        username="kafka",cnonce="…",response=6d1f…            proof that we know the password
    ZooKeeper: rspauth=a04c…                                         proof that it knows it too

MD5 is what ZooKeeper has here. The password is not sent, but whoever listens can guess passwords offline: use TLS.
"""

import re
import secrets
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from hashlib import md5
from hmac import compare_digest
from typing import Any, ClassVar, Final, NamedTuple

from penstock.stores.zookeeper_wire import Reader, Refused, Request, buffer

URI: Final = "zookeeper/zk-sasl-md5"
NONCE_BYTES: Final = 16
_COUNT: Final = "00000001"
_PAIR = re.compile(r'\s*([A-Za-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^,"]*))\s*(?:,|$)')


class LoginRefused(ConnectionError):
    """ZooKeeper does not take our name and password, or does not know them itself."""


class SaslUser(NamedTuple):
    name: str
    password: str

    def __repr__(self) -> str:
        return f"SaslUser({self.name!r})"


@dataclass(frozen=True, slots=True)
class SaslToken:
    """A step of the login."""

    TYPE: ClassVar[int] = 102
    token: bytes = field(repr=False)

    def body(self) -> bytes:
        return buffer(self.token)

    def answer(self, reader: Reader) -> bytes:
        return reader.buffer() or b""


Send = Callable[[Request, Callable[[Any, Exception | None], None]], None]


async def log_in(user: SaslUser, send: Send, loop: AbstractEventLoop) -> None:
    """LoginRefused, which says what the server has against us."""
    login = digest_login(user, secrets.token_hex(NONCE_BYTES))
    token = next(login)
    while True:
        answered: Future[tuple[bytes, Exception | None]] = loop.create_future()

        def take(
            value: Any,
            error: Exception | None,
            answered: Future[tuple[bytes, Exception | None]] = answered,
        ) -> None:
            if not answered.done():
                answered.set_result((value, error))

        send(SaslToken(token), take)
        answer, error = await answered
        if error is not None:
            why = str(error) if isinstance(error, Refused) else "it closed the connection"
            raise LoginRefused(f"it refuses the login of '{user.name}' by SASL: {why}")
        try:
            token = login.send(answer)
        except StopIteration:
            return


def digest_login(user: SaslUser, cnonce: str) -> Generator[bytes, bytes, None]:
    """Yields what to send, and is sent the answers. It ends when ZooKeeper has proven itself; LoginRefused."""
    challenge = _pairs((yield b""))
    nonce, realm = challenge.get("nonce"), challenge.get("realm", "")
    if not nonce or challenge.get("algorithm") != "md5-sess":
        raise LoginRefused("its SASL challenge is not of DIGEST-MD5")
    given = {"username": user.name, "realm": realm, "nonce": nonce, "cnonce": cnonce, "digest-uri": URI}
    quoted = ",".join(f'{name}="{_escaped(value)}"' for name, value in given.items())
    secret = md5(f"{user.name}:{realm}:{user.password}".encode(), usedforsecurity=False).digest()
    session = md5(secret + f":{nonce}:{cnonce}".encode(), usedforsecurity=False).hexdigest()

    def proof(what: str) -> str:
        return _hex(f"{session}:{nonce}:{_COUNT}:{cnonce}:auth:{_hex(f'{what}:{URI}')}")

    mine = f"charset=utf-8,{quoted},nc={_COUNT},qop=auth,response={proof('AUTHENTICATE')}"
    theirs = _pairs((yield mine.encode())).get("rspauth", "")
    if not compare_digest(theirs.encode(), proof("").encode()):
        raise LoginRefused("it does not know our password itself")


def _hex(text: str) -> str:
    return md5(text.encode(), usedforsecurity=False).hexdigest()


def _pairs(answer: bytes) -> dict[str, str]:
    text = answer.decode(errors="replace")
    found = {}
    at = 0
    while match := _PAIR.match(text, at):
        name, quoted, plain = match.groups()
        found[name.lower()] = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        at = match.end()
        if at >= len(text):
            break
    return found


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
