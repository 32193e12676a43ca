"""One Kafka client of our own, beside librdkafka: for what that cannot ask, and for reading whole ranges at once.

Two paths share `connection.BrokerConnection`, one connection with TLS (`tls`) and a login (`login`):

    readers          `options` → `brokers.Brokers` (connections that stay open, whom to ask; asks again after retriable errors) →
                     `topics.Client` (who leads what) → `fetching.fetch`; Spark's driver has its own questions over `Brokers`
    administration   `clients.Connection` (address and properties) → `cluster_client.ClusterClient` (any broker, one of them, a
                     coordinator, the controller) → `wire_client.WireClient` (a BrokerConnection with the errors of `errors`)

Both use `leaders` (the question for offsets and its answer), `properties` (the one table of names, Java's and librdkafka's),
`security` (what those names say about TLS and logins), `patience` (what is asked again, and until when) and `errors`.
librdkafka stays for producing and for members of groups: `Connection.producer` and `.consumer` make its clients.
"""
