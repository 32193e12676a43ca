"""What proves who somebody is, where it must be fetched or asked for: access tokens, the keys that sign them, Kerberos tickets.

`tokens` asks an identity provider for an access token; `signed_tokens` fetches the provider's keys and checks tokens with them.
`http` is how both ask a web server. `gssapi` has both sides of a login with Kerberos. The client, the broker and the web
services use the same ones.

All of it blocks: it waits for servers and files, each time with a deadline (Kerberos' library has its own). A caller with an
event loop uses a thread. Promised: no token and no secret is in a `repr` or an error. Not promised: that what was valid a moment
ago still is.
"""
