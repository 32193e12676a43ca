"""Schemas of records: Avro, JSON Schema and Protobuf; parsed, compared, and used to read and write values. Pure.

The path of a schema:

    parsing.parse(kind, text, references, texts) → a `model.Schema`: its canonical text, what it refers to
    compatibility.check(new, existing, level)    → what is wrong with it as the next version, in Confluent's words
    values.codec_of(schema)                      → encodes and decodes values

One folder for each kind (`avro`, `json_schema`, `protobuf`), each behind the same two interfaces, `model.Schema` and
`values.ValueCodec`. `framing` is the form of a value in a record (magic byte, id of the schema), `subject_names` says under which
subject a schema is registered, `fingerprints` has the ids that are made from the text.

Promised: time and memory are bounded by the size of the text and of what it refers to. Nothing is fetched. What cannot be read is
`InvalidSchema` or `InvalidValue`, with the reason.

Needs the extra `registry`: pip install 'penstock[registry]'.
"""
