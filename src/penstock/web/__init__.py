"""The frame that every HTTP service of Penstock shares: a service brings its routes, the frame does the rest.

The path of a request, each step in a module of its own:

    protocol (sizes, times, certificates) → frame (request id, limits, access log, metrics) → logins (who asks) →
    routes (which handler; `call` is what it gets) → content_types (the form of the answer) → errors (a refusal as JSON)

`service.WebService` says what a service is. `serving.serve` starts it, prints `penstock NAME: listening on URL` once it serves,
and stops it gracefully at SIGTERM. `options` is the table of properties that all services take, with Confluent's names.

Handlers run on the event loop and must not block it: what computes for long goes through `asyncio.to_thread`.
"""
