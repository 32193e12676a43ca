"""What a console is told: `console.yaml` and the command line become one `ConsoleSettings`, checked before anything starts.

The path: `document` ◇ reads YAML and remembers the line of each value → `reading` makes the settings of it, and refuses what
cannot be meant with the line of the mistake → `model` is what the rest of the console sees.
"""

from penstock.console.settings.model import (
    AuditSettings,
    ClusterSettings,
    ConsoleSettings,
    HistorySettings,
    LoginSettings,
    OidcSettings,
)

__all__ = [
    "AuditSettings",
    "ClusterSettings",
    "ConsoleSettings",
    "HistorySettings",
    "LoginSettings",
    "OidcSettings",
]
