"""Names for columns that have none, as ksqlDB makes them.

`KSQL_COL_0`, `KSQL_COL_1` for expressions; the field's name for `struct->field`, with `_1` behind it where the name is in use;
`SOURCE_COLUMN` for columns of joins; `ROWKEY` for the key of a join on expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from penstock.streams.plan.expressions import Expression, FieldOf

_NUMBERED: Final = re.compile(r"(.*?)(?:_(\d+))?\Z", re.DOTALL)
GENERATED: Final = "KSQL_COL"
SYNTHETIC_KEY: Final = "ROWKEY"
AGGREGATE_PREFIX: Final = "KSQL_AGG_VARIABLE_"
TABLE_FUNCTION_PREFIX: Final = "KSQL_SYNTH_"


class Aliases:
    """Gives names that none of `used` has."""

    def __init__(self, used: Iterable[str]) -> None:
        self._used: dict[str, set[int]] = {}
        self._next: dict[str, int] = {}
        for name in used:
            prefix, number = _split(name)
            self._used.setdefault(prefix, set()).add(number)

    def column(self) -> str:
        return self._take(GENERATED)

    def of(self, expression: Expression) -> str:
        if isinstance(expression, FieldOf):
            return self._take(_split(expression.name)[0])
        return self.column()

    def synthetic_key(self) -> str:
        return self._take(SYNTHETIC_KEY)

    def _take(self, prefix: str) -> str:
        number = self._next.get(prefix, 0)
        while number in self._used.get(prefix, ()):
            number += 1
        self._next[prefix] = number + 1
        return prefix if number == 0 and prefix != GENERATED else f"{prefix}_{number}"


def _split(name: str) -> tuple[str, int]:
    found = _NUMBERED.match(name)
    assert found is not None
    return found.group(1), int(found.group(2) or 0)


def joined_name(alias: str, column: str) -> str:
    return f"{alias}_{column}"


def listed(items: Sequence[str], word: str) -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {word} {items[-1]}"


def nearest(name: str, known: Iterable[str]) -> str:
    """A line that asks whether another name was meant, if one is near."""
    found = get_close_matches(name, list(dict.fromkeys(known)), n=1, cutoff=0.6)
    return f"\nDid you mean {found[0]}?" if found else ""
