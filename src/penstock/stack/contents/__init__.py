"""What a description says shall be in a stack: topics, schemas, connectors, statements. Made where they are missing.

`applying` goes through them in their order; each kind has a module. What is there already and as it shall be is left alone, so
the same description can be applied again and again. What is there and differs is changed where that loses nothing (partitions
added, configs set, a new version of a schema, a connector's configuration) and told otherwise. Nothing is ever deleted: `made`
remembers what an earlier description had, and what is no longer in it is told with the command that removes it.

Everything is done over the protocols, so it works for Apache Kafka, and for services elsewhere, too.
"""
