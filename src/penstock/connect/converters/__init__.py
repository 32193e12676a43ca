"""Converters: between values with their schemas and the bytes in a topic, or in a header.

    json       ◇ JsonConverter: `json_schemas` (schemas as JSON), `json_writing` and `json_reading` (made once for a schema)
    simple     ◇ strings, bytes, booleans and numbers as Kafka's serializers have them
    header     ◇ SimpleHeaderConverter
    registry     Avro, JSON Schema and Protobuf through a schema registry: one folder of `registered` for each

Promises: what Kafka's converter of the same name reads and writes, for the same options; refusals in its words. Values are not
changed. A converter is used by one thread at a time.
"""
