"""Broker options that Kafka does not have. Their names begin with `penstock.`, so that they never meet one of Kafka's."""

from penstock.config.option import READ_ONLY, STRING, Option

OWN_OPTIONS = (
    Option("penstock.metrics.listener", STRING, None, None, READ_ONLY,
           "Where metrics are served over HTTP to Prometheus, as host:port; an empty host means every address. "
           "Not set, they are not served.", internal=True),
)  # fmt: skip
