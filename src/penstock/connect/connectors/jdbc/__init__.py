"""Rows of databases to topics, and records of topics to rows: PostgreSQL, MySQL and MariaDB, SQLite, through SQLAlchemy.

Configurations of Confluent's and Aiven's JDBC connectors are taken as they are, JDBC URLs too.

The way of a sink's batch: records → `rows` (which columns, which values) → `batches` (order per key, a key that comes twice)
→ `writers` (one statement or COPY for all rows) in one transaction, with the offsets in it where that is asked for. `tables`
makes and widens tables. The source asks (`queries`) for rows from where it was, and streams them.

Promises: the sink writes at least once, and exactly once with `penstock.offsets.table`. The source gives each row at least
once, in `incrementing` mode each new row, in `timestamp` modes each change that its column shows.
"""
