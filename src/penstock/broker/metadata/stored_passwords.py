"""Passwords of listeners that were set while a broker ran: encrypted in the metadata, open in this broker's configuration.

As Kafka's brokers on ZooKeeper have it, with `password.encoder.secret`, and where that was changed
`password.encoder.old.secret`: what is stored with that is encrypted again at the start. All brokers of a cluster need the same
secret, as the controller encrypts for all. Without a secret no password can be set. One that an older version stored in clear
still counts, with a warning.
"""

import logging
from collections.abc import Mapping
from typing import Final

from penstock.config.broker_options import BROKER_OPTIONS, listener_option_base
from penstock.config.layers import BrokerConfig
from penstock.metadata import znodes
from penstock.metadata.image import BROKERS, ClusterImage, ConfigsChanged
from penstock.metadata.tree import MetadataTree, TreeError
from penstock.security.password_encoder import NotDecoded, PasswordEncoder, is_encoded

log = logging.getLogger("penstock.broker")

SECRET: Final = "password.encoder.secret"
OLD_SECRET: Final = "password.encoder.old.secret"
MAX_OPENED: Final = 1000
"""Texts whose passwords are remembered: to open one takes a millisecond or two."""


def is_password(name: str) -> bool:
    option = BROKER_OPTIONS.get(listener_option_base(name) or name)
    return option is not None and option.sensitive


class StoredPasswords:
    def __init__(self, config: BrokerConfig) -> None:
        """ValueError, which names the option, where the encoder's options cannot be used."""
        self._encoder = _encoder(config, SECRET)
        self._old_encoder = _encoder(config, OLD_SECRET)
        self._opened: dict[str, str] = {}

    @property
    def has_secret(self) -> bool:
        return self._encoder is not None

    def must_open(self, overrides: Mapping[str, str]) -> bool:
        """Whether `open` has something to compute."""
        return any(
            is_password(name) and is_encoded(text) and text not in self._opened
            for name, text in overrides.items()
        )

    def open(self, overrides: Mapping[str, str]) -> dict[str, str]:
        """With the passwords themselves. One that cannot be opened is left out, and told in the log."""
        opened = {}
        for name, text in overrides.items():
            if not is_password(name):
                opened[name] = text
                continue
            try:
                opened[name] = self._open(text)
            except NotDecoded as error:
                log.error("Dynamic password config %s could not be decoded, ignoring: %s", name, error)
        return opened

    def seal(self, password: str) -> str:
        """For who knows that there is a secret."""
        assert self._encoder is not None
        text = self._encoder.encode(password)
        self._remember(text, password)
        return text

    def sealed_anew(self, overrides: Mapping[str, str]) -> dict[str, str]:
        """What is in clear or made with the old secret is encrypted with the secret of today; the rest stays as it is."""
        sealed = dict(overrides)
        if self._encoder is None:
            return sealed
        for name, text in overrides.items():
            if not is_password(name):
                continue
            try:
                if not is_encoded(text):
                    sealed[name] = self.seal(text)
                elif self._old_encoder is not None:
                    sealed[name] = self.seal(self._old_encoder.decode(text))
            except NotDecoded:
                pass  # it was made with the secret of today
        return sealed

    async def seal_stored(self, tree: MetadataTree, image: ClusterImage, broker_id: int) -> None:
        """Of this broker, at its start. What cannot be written stays as it is, and is read so."""
        stored = image.broker_overrides(broker_id)
        for name, text in stored.items():
            if is_password(name) and not is_encoded(text) and not self.has_secret:
                log.warning("%s is stored in clear; with %s it is encrypted at the next start", name, SECRET)
        sealed = self.sealed_anew(stored)
        if sealed == stored:
            return
        path = znodes.config_path(BROKERS, str(broker_id))
        try:
            node = await tree.get(path)
            if znodes.decode_config(path, node.data) == stored:
                await tree.set(path, znodes.encode_config(sealed), version=node.version)
                image.apply(ConfigsChanged(BROKERS, str(broker_id), sealed))
                log.info("stored passwords are encrypted with today's %s", SECRET)
        except (TreeError, znodes.BadNode) as error:
            log.warning("stored passwords could not be encrypted anew: %s", error)

    def _open(self, text: str) -> str:
        if not is_encoded(text):
            return text
        known = self._opened.get(text)
        if known is not None:
            return known
        encoders = [encoder for encoder in (self._encoder, self._old_encoder) if encoder is not None]
        if not encoders:
            raise NotDecoded(f"{SECRET} is not configured")
        for encoder in encoders:
            try:
                password = encoder.decode(text)
                break
            except NotDecoded:
                if encoder is encoders[-1]:
                    raise
        self._remember(text, password)
        return password

    def _remember(self, text: str, password: str) -> None:
        if len(self._opened) >= MAX_OPENED:
            self._opened.clear()
        self._opened[text] = password


def _encoder(config: BrokerConfig, secret_option: str) -> PasswordEncoder | None:
    secret = config.get(secret_option)
    if not secret:
        return None
    return PasswordEncoder(
        secret,
        key_factory=config.get("password.encoder.keyfactory.algorithm"),
        cipher=config.get("password.encoder.cipher.algorithm"),
        key_bits=config.get("password.encoder.key.length"),
        iterations=config.get("password.encoder.iterations"),
    )
