"""Connectors for Penstock Connect: a folder as a source, a SQLite table as a sink."""
