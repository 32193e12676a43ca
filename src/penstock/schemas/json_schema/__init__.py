"""JSON Schema, drafts 4 to 2020-12.

The path of a schema:

    json_text    text → JSON, and the canonical text, as Confluent's registry prints it
    documents    where each `$ref` leads, in this schema and in those that are its references (uris, drafts)
    parsing      the two above, then jsonschema_rs, which checks it by its metaschema → `JsonSchema`
    bundle       a schema and what it refers to as one, for jsonschema_rs
    loading      schemas → nodes, which say what is compared
    compatibility → objects, arrays, scalars, combined: pairs of nodes → differences, in Confluent's words
    values       the codec (alternatives: whether a mistake's place can be found in bounded time)

Promised: the same differences at the same paths as Confluent's rules, under STRICT and LENIENT. Nothing is fetched. Time and
memory have bounds, also for schemas that contain themselves and for regular expressions.

Not promised: that a compatible schema accepts everything that the old one did. Confluent's rules do not look at some keywords
(docs/decisions/0016).
"""
