"""Dead letter topics: read to their end, replayed to where they came from, with marks of what was replayed."""
