"""Broker options that Apache Kafka does not have. Ours begin with `penstock.`, so that they never meet one of Kafka's; those
about schemas have the names that they have on Confluent's brokers."""

from penstock.config.option import BOOLEAN, INT, PASSWORD, READ_ONLY, STRING, Option, at_least, one_of

OWN_OPTIONS = (
    Option("penstock.metrics.listener", STRING, None, None, READ_ONLY,
           "Where the broker serves metrics for Prometheus (HTTP), as host:port. An empty host means every address. "
           "Not set: no metrics.", internal=True),
    Option("penstock.metrics.spelling", STRING, "strimzi", one_of("strimzi", "confluent"), READ_ONLY,
           "How the metrics' names are spelled: as in Strimzi's dashboards and most JMX exporters (`…bytesin_total`), or as in "
           "Confluent's (`…bytesinpersec`).", internal=True),
    Option("penstock.metrics.groups", BOOLEAN, True, None, READ_ONLY,
           "Whether the metrics hold offsets and lag of consumer groups, under the names of kafka_exporter and "
           "kafka-lag-exporter.", internal=True),
    Option("penstock.metrics.max.groups", INT, 10_000, at_least(0), READ_ONLY,
           "Of how many groups the metrics hold offsets and lag at most. How many are left out is a metric too.", internal=True),
    Option("penstock.metrics.max.group.partitions", INT, 100_000, at_least(0), READ_ONLY,
           "How many partitions all these groups may have together in the metrics; the groups beyond that are left out.",
           internal=True),
    Option("confluent.schema.registry.url", STRING, None, None, READ_ONLY,
           "The schema registry for topics with `confluent.value.schema.validation`: one address, or several "
           "with commas, which are tried in turn.", internal=True),
    Option("confluent.ssl.truststore.location", STRING, None, None, READ_ONLY,
           "The authorities whose certificates an https schema registry may have: PEM, PKCS12 or JKS. Not set: those that this "
           "machine trusts.", internal=True),
    Option("confluent.ssl.truststore.password", PASSWORD, None, None, READ_ONLY, "Its password.", internal=True),
    Option("confluent.ssl.truststore.type", STRING, None, None, READ_ONLY,
           "Not needed: a file says itself what it is.", internal=True),
    Option("confluent.basic.auth.user.info", PASSWORD, None, None, READ_ONLY,
           "The login at the schema registry, as NAME:PASSWORD.", internal=True),
    Option("confluent.bearer.auth.token", PASSWORD, None, None, READ_ONLY,
           "A token for the schema registry, in place of a login.", internal=True),
    Option("penstock.schema.validation.unavailable", STRING, "refuse", one_of("refuse", "allow"), READ_ONLY,
           "What becomes of records with an unknown schema id while the schema registry does not answer: `refuse` (with an error "
           "after which producers try again) or `allow`.", internal=True),
)  # fmt: skip
