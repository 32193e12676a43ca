"""The SQL server: ksqlDB's statements and REST API over topics of any Kafka cluster; its queries run as
`penstock.streams` plans.

parsing    a text becomes statements (pure; names and expressions as they stand)
analysis   a statement and the catalog of sources become a plan, or a refusal with its place (pure)
engine     the catalog, the log of commands, running queries, views for pull queries
server     the REST API on `penstock.web`
"""
