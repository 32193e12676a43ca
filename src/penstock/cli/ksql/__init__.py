"""`ksql`: the prompt for a SQL server, ours or ksqlDB.

`command` reads the command line; `prompt` reads statements from a person, `session` runs them (and keeps SET and
DEFINE), `service` asks
the server, `rendering` shows what it said, in `tables`.
"""
