"""Files of Java properties that a user names on a command line, and `name=value` words."""

import logging

from penstock.client.errors import UserError, reason

log = logging.getLogger("penstock.client")


def read_properties(path: str) -> dict[str, str]:
    """UserError, in one sentence, when the file cannot be read or is not of properties."""
    from penstock.config.option import ConfigError
    from penstock.config.properties import parse_properties, repeated_names

    text = read_text(path)
    try:
        found = parse_properties(text)
    except ConfigError as error:
        raise UserError(f"cannot read {path}: {error}") from None
    for name in repeated_names(text):
        log.warning("WARN: %s says %s more than once: the last one counts", path, name)
    return found


def read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:
        raise UserError(f"cannot read {path}: it is not text") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {reason(error)}") from None


def parse_pairs(words: list[str]) -> dict[str, str]:
    """Each word `name=value`; the value may hold more equals signs, and may be missing."""
    pairs = {}
    for word in words:
        name, _, value = word.partition("=")
        pairs[name] = value
    return pairs
