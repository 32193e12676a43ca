"""Debezium's transforms that people use with its connectors: of a change, what is in the row now (`new_record_state`); of a row
of an outbox table, the event (`event_router`); of tables with the same columns, one topic (`logical_tables`).

A change is a struct whose schema's name ends with .Envelope: before, after, source, op (c, u, d, r, t), ts_ms, transaction.
"""
