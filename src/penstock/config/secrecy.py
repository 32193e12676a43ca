"""Which broker options hold secrets: passwords, keys, login lines."""

from typing import Final

from penstock.config.broker_options import BROKER_OPTIONS, listener_option_base

_WORDS: Final = ("password", "secret", "jaas.config")


def is_secret(name: str) -> bool:
    """Of an option that Penstock does not know, its name tells."""
    option = BROKER_OPTIONS.get(listener_option_base(name) or name)
    return name.endswith(_WORDS) if option is None else option.sensitive
