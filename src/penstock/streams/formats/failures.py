"""What goes wrong with formats."""

from __future__ import annotations


class BadRecord(Exception):
    """A record that cannot be read, or a row that its format cannot carry. It is left out and told, and is no bug."""


class FormatRefused(Exception):
    """A format does not carry these columns, or does not take this property: known before the first record."""


class SchemasUnavailable(Exception):
    """The schema registry does not answer, or refuses. No record is at fault: the work on it ends, and begins again."""
