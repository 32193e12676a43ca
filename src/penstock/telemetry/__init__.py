"""Metrics that clients push (KIP-714). Pure.

`subscriptions` says which clients push what and how often. `instances` are the clients that asked: each gets a subscription and
is held to its interval. `otlp` reads what they push, and `reports` keeps the last of it, under bounds, for the metrics page.

Promised: every broker gives a client the same subscription id for the same configs, so it may push to any of them; nothing that
a client sends makes the state grow past its bounds. Not promised: that a report outlives the broker, or that all of a report
above the bounds is kept.
"""
