"""Avro schemas, by the rules of Apache Avro's Java library, which Confluent's registry uses.

    json_text.read   → the JSON of a text
    parsing.parse    → a `schema.AvroSchema`: its tree of `nodes`, and its canonical text (`text`)
    compatibility    → why one schema cannot read what another wrote
    values.codec_of  → values: `encoding` writes them, fastavro (`fast_form`) or `decoding` reads them

What is read back from a registry's topic is read leniently; `new_schemas` has what is asked of a new one besides: names of
ASCII letters, and default values that fit their fields.

Promised: types and values nested too deeply are refused, never a crash; comparing two schemas takes at most so many steps.
"""
