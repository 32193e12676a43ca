"""Rows from and to the bytes of records.

`codecs.key_codec` and `codecs.value_codec` give, for a source's formats and columns, an object with `decode(bytes) -> tuple` and
`encode(tuple) -> bytes`. `failures.BadRecord` says what could not be read, `failures.FormatRefused` what a format does not
carry. Codecs are made once, of functions that are made for the columns; a record costs little.

    json_reading, json_values, json_writing; delimited; kafka_values    formats that need no registry
    registered; avro_schemas, avro_values; json_schemas; protobuf_schemas, protobuf_values    those whose schema is registered
    inference    columns from a registry's schema; the schemas that a new topic registers
    windowed     the bytes of windowed keys          timestamps    ROWTIME from a column

`registry.SchemaLookup` is the registry; `penstock.streams.schema_lookup` has the one over our client.
"""
