"""`--add-scram` of kafka-storage: SCRAM-SHA-512=[name=ana,password=s3cret,iterations=8192].

In place of the password it takes what is made of it: salt="…",saltedpassword="…", both as base64.
"""

from __future__ import annotations

import base64
import binascii
import re

from penstock.admin.users import upsertion
from penstock.client.errors import UserError
from penstock.security.scram import MAX_ITERATIONS, MECHANISM_CODES, MIN_ITERATIONS
from penstock.wire.messages.alter_user_scram_credentials import ScramCredentialUpsertion

DEFAULT_ITERATIONS = 4096
KNOWN = {"name", "password", "iterations", "salt", "saltedpassword"}
_FORM = re.compile(r"(?P<mechanism>[^=]+)=\[(?P<parts>.*)\]", re.DOTALL)
_CODES = {name: code for code, name in MECHANISM_CODES.items()}


def parse_scram(text: str) -> ScramCredentialUpsertion:
    """UserError, which never shows what was given for a password."""
    found = _FORM.fullmatch(text.strip())
    if found is None or found["mechanism"] not in _CODES:
        raise UserError(f"--add-scram takes {' or '.join(_CODES)}=[name=NAME,password=PASSWORD]")
    parts = dict(part.strip().partition("=")[::2] for part in found["parts"].split(","))
    given = {name.lower(): value.strip('"') for name, value in parts.items()}
    if set(given) - KNOWN:
        raise UserError(f"--add-scram knows {', '.join(sorted(KNOWN))} only")
    if not given.get("name"):
        raise UserError("--add-scram: the name is missing")
    mechanism, iterations = found["mechanism"], _iterations(given.get("iterations", str(DEFAULT_ITERATIONS)))
    if ("password" in given) == ("saltedpassword" in given):
        raise UserError("--add-scram takes a password, or a salt and a saltedpassword")
    if "password" in given:
        if "salt" in given:
            raise UserError("--add-scram: a salt goes with a saltedpassword")
        return upsertion(given["name"], given["password"], mechanism=mechanism, iterations=iterations)
    return ScramCredentialUpsertion(
        name=given["name"],
        mechanism=_CODES[mechanism],
        iterations=iterations,
        salt=_bytes(given, "salt"),
        salted_password=_bytes(given, "saltedpassword"),
    )


def _iterations(text: str) -> int:
    if not text.isdecimal() or not MIN_ITERATIONS <= int(text) <= MAX_ITERATIONS:
        raise UserError(f"--add-scram: iterations must be {MIN_ITERATIONS} to {MAX_ITERATIONS}")
    return int(text)


def _bytes(given: dict[str, str], name: str) -> bytes:
    try:
        found = base64.b64decode(given.get(name, ""), validate=True)
    except binascii.Error:
        raise UserError(f"--add-scram: {name} is not base64") from None
    if not found:
        raise UserError(f"--add-scram: {name} is missing")
    return found
