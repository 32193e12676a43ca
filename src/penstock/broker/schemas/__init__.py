"""Records whose schemas the schema registry must know: topics with `confluent.value.schema.validation`.

    partitions/openings → checks.schema_ids (which schemas a batch names) → checks.SchemaChecks → registry (asked by a thread)

Promised: a record is stored only if it is null there, or names a schema that is registered under the topic's subject. What the
registry said is remembered; while it does not answer, `penstock.schema.validation.unavailable` decides. Not promised: that the
bytes behind the id fit the schema. Other topics never come here.
"""
