"""One Kafka client of our own, beside librdkafka: for what that cannot ask, and for reading whole ranges at once.

The one path through it: `options` checks Kafka's properties, those of security in `security`;
`connection.BrokerConnection` is one connection with TLS (`tls`) and a login (`login`); `topics.Client` knows who leads which
partition and asks again what may pass; `fetching.fetch` reads ranges of partitions, one thread per leader.

librdkafka stays for producing and for members of groups.
"""
