"""A client of ksqlDB's REST API, for our server and for ksqlDB's: what the prompt `ksql` is made of.

`service.SqlServer` asks the server. `session.Session` runs a person's statements one after another, and does what the prompt does
itself (SET, DEFINE, RUN SCRIPT). `configured` reads the file that says how the server is reached. `statements` finds where a
statement ends; `rendering` makes lines for a person of what the server says. Nothing here prints.
"""
