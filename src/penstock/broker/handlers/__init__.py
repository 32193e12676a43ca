"""One file per API: the folder listing is the coverage table. Handlers never import one another.

Most have the form `handle(node, call, request) -> response`, plain or `async`, with version-free messages. Produce and Fetch,
the hot path, have `handle_frame(node, call, frame, offset)` and read the frame themselves.

Each header says which API key and versions, what it does, and last what is not done. Not done anywhere yet, and so not repeated:
authorization (whoever connects may do everything) and client quotas (nobody is throttled but by PushTelemetry's interval).
"""
