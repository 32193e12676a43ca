"""Who a client is: decisions only, without sockets or a clock.

`principals` turns the names in certificates into principals, `kerberos` those in tickets; `jaas` reads Java's login lines;
`scram` has credentials and the server's side of an exchange; `sasl` has logins step by step, `bearer` the messages of logins
with access tokens. `key_stores` reads certificates and keys; it is the one module here that opens files.

Promised: a decision depends on its arguments alone, and no secret is in a `repr` or an error. Not promised: storage. The broker
reads and writes the metadata tree, and hands in what it found.
"""
