"""Random records that an Avro schema describes, for demonstrations and load: Confluent's datagen connector.

`arg.properties` of a type says what its values look like:

    {"type": {"type": "string", "arg.properties": {"regex": "Item_[1-9]\\\\d{0,2}"}}}

options (a list), range {min, max}, iteration {start, restart, step}, length (a number, or {min, max}), regex, odds (of true).
"""
