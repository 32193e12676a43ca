"""GSSAPI on one listener: who comes with a Kerberos ticket for this broker.

The steps are taken in threads: the library reads and writes files. `sasl.kerberos.principal.to.local.rules` shortens names.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from penstock.broker.requests.later import Later
from penstock.credentials.gssapi import Acceptance, Acceptor, GssFailed, own_realm
from penstock.runtime.pools import Pool
from penstock.security.jaas import LoginModule
from penstock.security.kerberos import GSSAPI, RULES, SERVICE, BadRule, LocalNames, TicketSource, parse_rules
from penstock.security.sasl import LoginFailed, invalid_credentials

OPTION: Final = "gssapi.sasl.jaas.config"
MAX_SHOWN: Final = 300
MAX_TOKEN_BYTES: Final = 64 << 10
"""As in Kafka's documentation of sasl.server.max.receive.size."""


class KerberosExchange:
    def __init__(self, pool: Pool, acceptor: Acceptor, names: LocalNames) -> None:
        self._pool = pool
        self._names = names
        self._acceptance = Acceptance(acceptor)
        self.user: str | None = None
        self.is_token = False
        self.good_until_ms: int | None = None

    def step(self, token: bytes) -> Later[bytes]:
        if len(token) > MAX_TOKEN_BYTES:  # not even for a thread: it would wait there
            raise LoginFailed(invalid_credentials(GSSAPI), "Kerberos: the token is too long")
        return Later(self._step(token))

    async def _step(self, token: bytes) -> bytes:
        try:
            answer: bytes = await self._pool.run(self._acceptance.step, token)
            name = self._acceptance.name
            if name is not None:
                self.user = self._names.of(name)
        except (GssFailed, BadRule) as error:
            raise LoginFailed(invalid_credentials(GSSAPI), f"Kerberos: {str(error)[:MAX_SHOWN]!r}") from None
        return answer


def kerberos_logins(
    given: Mapping[str, str], module: LoginModule, pool: Pool
) -> Callable[[], KerberosExchange]:
    """ValueError, which names the option. Reads files: for the start."""
    try:
        source = TicketSource.of(module.options, given.get(SERVICE, "").strip())
    except ValueError as error:
        raise ValueError(f"{OPTION}: {error}") from None
    if not source.keytab:
        raise ValueError(f'{OPTION}: must hold useKeyTab=true, keyTab="…" and principal="…"')
    rules = parse_rules(given.get(RULES, ""))
    try:
        acceptor = Acceptor(source)
        names = LocalNames(rules, own_realm() or source.principal.rpartition("@")[2])
    except GssFailed as error:
        raise ValueError(f"{OPTION}: {error}") from None
    return partial(KerberosExchange, pool, acceptor, names)
