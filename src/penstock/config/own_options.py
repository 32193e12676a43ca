"""Broker options that Apache Kafka does not have. Ours begin with `penstock.`, so that they never meet one of Kafka's; those
about schemas have the names that they have on Confluent's brokers."""

from penstock.config.option import PASSWORD, READ_ONLY, STRING, Option, one_of

OWN_OPTIONS = (
    Option("penstock.metrics.listener", STRING, None, None, READ_ONLY,
           "Where the broker serves metrics for Prometheus (HTTP), as host:port. An empty host means every address. "
           "Not set: no metrics.", internal=True),
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
