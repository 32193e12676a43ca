"""What a program may not say, in one line, and names that were nearly right."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

SHOWN_NAMES = 12


class TopologyError(ValueError):
    """The program asks for what cannot be. The message is one line."""


def unknown(what: str, name: str, known: Iterable[str]) -> TopologyError:
    """ "There is no column 'pgae': did you mean 'page'?" """
    names = list(known)
    folded = {each.casefold(): each for each in reversed(names)}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    if near:
        return TopologyError(f"there is no {what} '{name}': did you mean '{folded[near[0]]}'?")
    if not names:
        return TopologyError(f"there is no {what} '{name}', and no other")
    shown = ", ".join(names[:SHOWN_NAMES]) + (", …" if len(names) > SHOWN_NAMES else "")
    return TopologyError(f"there is no {what} '{name}': there are {shown}")


def one_line(text: object) -> str:
    return " ".join(str(text).split())
