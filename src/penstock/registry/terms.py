"""Whose records count: each leader has a term, and its records carry it in a header.

A leader that hangs does not know that it has been replaced. When it goes on, it may write a version that the new leader has
written already, and the broker takes both. So each leader begins with a NOOP of a new term, one higher than any in the topic,
and everybody who reads the topic follows one rule:

    a record of the present term counts; one of a higher term counts and makes it the present one;
    any other is a late one of a leader that has been replaced, and is ignored.

    NOOP 3/a   (s, 1) 3/a   NOOP 4/b   (s, 2) 4/b   (s, 2) 3/a        the last one is ignored by all, and never answered

Two that begin the same number at once are told apart by a random name: the first in the topic has it. The topic's compaction
keeps the last record of a key, which may be a late one: the leader writes again what counts (`State.overwritten`). Records
without a term are of other registries, and count.
"""

from __future__ import annotations

from typing import Final, NamedTuple

HEADER: Final = "penstock.term"


class Term(NamedTuple):
    number: int
    holder: str

    def header(self, sequence: int) -> bytes:
        return f"{self.number}:{self.holder}:{sequence}".encode()


NO_TERM: Final = Term(0, "")


def parse(header: bytes) -> tuple[Term, int] | None:
    """The term and the number of the record in it; None for what is none of ours."""
    number, _, rest = header.decode("ascii", "replace").partition(":")
    holder, _, sequence = rest.partition(":")
    if not number.isdigit() or not sequence.isdigit() or not holder or len(header) > 100:
        return None
    return Term(int(number), holder), int(sequence)


def counts(present: Term, of_record: Term) -> bool:
    return of_record == present or of_record.number > present.number
