"""The servers beside the brokers that the console asks: the schema registry, Connect's workers, the SQL server.

`registry`, `connect` and `sql` are what screens ask of each, with the clients of `penstock.client` and `penstock.sql.client`;
`sql_run` is what a person's statements say while they run. Calls block. `asking.asked` makes them in a few threads of their own,
so that a server that is away holds up neither the page nor what is asked of the brokers. Every call has a deadline. What goes
wrong is a `UserError`, `Refused` or `Unreachable`, in one line.
"""
