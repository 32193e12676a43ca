"""One file per API: the folder listing is the coverage table. Handlers never import one another.

Most have the form `handle(node, call, request) -> response`, plain or `async`, with version-free messages. Produce and Fetch,
the hot path, have `handle_frame(node, call, frame, offset)` and read the frame themselves.
"""
