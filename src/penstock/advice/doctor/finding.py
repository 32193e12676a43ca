"""One thing that is wrong or unwise."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

MAX_EVIDENCE: Final = 10


class Severity(Enum):
    """How soon somebody should act."""

    ERROR = "error"
    """Records cannot be written or read, or may be lost now."""
    WARNING = "warning"
    """It works today; one failure or some time more, and it does not."""
    NOTE = "note"
    """Worth knowing; it costs money or speed."""

    @property
    def rank(self) -> int:
        """0 is the most urgent."""
        return list(Severity).index(self)


class Finding(NamedTuple):
    """What a check found. Texts are plain sentences without markup; names of topics and groups are in them as they are."""

    severity: Severity
    title: str
    """One line: what is wrong."""
    evidence: tuple[str, ...]
    """Lines with numbers and names; at most `MAX_EVIDENCE`, the last says how many more there are."""
    advice: str
    """What to do about it, and why, in one or two sentences."""
    command: str | None = None
    """What mends it, as one would type it; several commands are on lines of their own. None where no command does. It does not
    say where the cluster is: `with_connection` adds that."""
    check: str = ""
    """The name of the check that found it, as `penstock doctor --only` takes it."""


def listed(lines: Sequence[str], limit: int = MAX_EVIDENCE) -> tuple[str, ...]:
    """The first few lines, and how many more there are."""
    if len(lines) <= limit:
        return tuple(lines)
    return (*lines[: limit - 1], f"… and {len(lines) - limit + 1} more")


def with_connection(command: str, bootstrap: str | None, config: str | None = None) -> str:
    """The same commands with where the cluster is and how one logs in, so that they can be copied. Commands about a stack
    (`--data`), and those that only show their help, stay as they are."""
    return "\n".join(_connected(line, bootstrap, config) for line in command.split("\n"))


def _connected(line: str, bootstrap: str | None, config: str | None) -> str:
    program = line.partition(" ")[0]
    if (
        " --data " in line
        or line.endswith(" --help")
        or not (program == "penstock" or program.startswith("kafka-"))
    ):
        return line
    words = [line]
    if bootstrap is not None:
        words += ["-b" if program == "penstock" else "--bootstrap-server", shlex.quote(bootstrap)]
    if config is not None:
        words += ["--command-config", shlex.quote(config)]
    return " ".join(words)
