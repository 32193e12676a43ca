"""Who looks at the console and what they may do: logins, sessions on the server, roles ◇, masking ◇, the audit log.

The one path: a request brings a cookie → `sessions` knows the session or not → `roles` says what its visitor may do → a change
goes through `PageContext.act`, which asks again, and tells `audit`. Nothing in a browser decides anything.
"""
