"""Guards: what a client must be allowed to do for each API, and what it gets instead of what it may not have.

`table` has a row for each API; read it first. A row is steps, and each step is one question to the access rules:

    Needs      the whole request, on one resource: else all of it is refused
    Each       each item of a list in the request: what is refused is taken out, and its error put into the answer in its place
    Hides      each item of a list in the answer: what may not be seen is left out, and nobody is told
    a function what asks for more than that (`topics`, `groups`, `transactions`, `configs`)

`engine` applies a row around a handler, which sees only what is allowed: most handlers do not know that there are rules. With
no authorizer nothing of this is asked. What the broker does for itself is not asked either: it calls no handler.
"""
