"""The web console: pages over one or several clusters, ours or Apache Kafka's.

The one path through it, from a browser to a broker and back:

    web.frame (TLS, bounds, access log) → gate (session, origin, headers) → pages.app → asking.context_of (cluster, visitor) →
    a screen of pages/ → clusters.snapshot (what is known already), or actions/ → PageContext.act (role, audit) → admin, upstream

`service` puts it together and ends it; `settings` is what it was told; `access` is who may do what; `history` keeps series for
charts; `messages` reads and searches topics; `upstream` asks registry, Connect and SQL server; `words` are the languages.

Promised: nothing is changed but by `act`, which asks for the role and the session at that moment and tells the audit log. What is
in a cluster is shown as text. What a page costs the brokers does not grow with what it shows. Not promised: that what is shown is
of this instant, or that a page outlives the process.
"""
