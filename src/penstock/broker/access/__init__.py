"""Who comes in, and what they may do: the security of listeners, and access rules.

`doors.Doors` says for each listener how it is entered: plainly, by TLS (`listener_tls`, which also renews certificates), by a
login (`logins`; with access tokens `bearer_login` and `bearer_keys`, with Kerberos `kerberos_login`), or by both. `peer_access`
is how this broker enters the listeners of the others; `tokens` has the secrets of delegation tokens.

Who is in may do what `authorizer` says, by the rules in the metadata. `guards` asks it for nearly all handlers.
"""
