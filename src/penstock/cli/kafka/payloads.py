"""The values of test records: letters by chance, lines of a file, or numbers that count up."""

import random
import re
from collections.abc import Callable
from pathlib import Path

from penstock.cli.failures import UserError
from penstock.cli.property_files import read_text

Payload = Callable[[int], bytes]
"""From the number of a record."""

SEED = 0
ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
TO_LETTERS = bytes(ALPHABET[byte % len(ALPHABET)] for byte in range(256))


class RandomLetters:
    """The same in each run, so that two runs can be compared."""

    def __init__(self) -> None:
        self._random = random.Random(SEED)

    def take(self, size: int) -> bytes:
        return self._random.randbytes(size).translate(TO_LETTERS)


def random_payload(size: int) -> Payload:
    letters = RandomLetters()
    return lambda number: letters.take(size)


def monotonic_payload(number: int) -> bytes:
    return str(number).encode()


def payload_of_file(path: str, delimiter: str) -> Payload:
    """One of the file's pieces by chance. `delimiter` is a regular expression."""
    print(f"Reading payloads from: {Path(path).absolute()}")
    pieces = _pieces(read_text(path), delimiter)
    if not pieces:
        raise UserError("File does not exist or empty file provided.")
    print(f"Number of records read: {len(pieces)}", flush=True)
    chosen = random.Random(SEED)
    return lambda number: chosen.choice(pieces)


def _pieces(text: str, delimiter: str) -> list[bytes]:
    """Without the empty ones at the end, as Java splits."""
    try:
        pieces = [piece.encode() for piece in re.split(delimiter, text)]
    except re.error as error:
        raise UserError(f"--payload-delimiter is no regular expression: {error}") from None
    while pieces and not pieces[-1]:
        pieces.pop()
    return pieces
