"""The configuration layer: tables of options, Kafka's layers over them, and the texts that describe them.

The path: `properties.parse_properties` turns a server.properties text into names and values; `loading.load`
checks them and makes a `layers.BrokerConfig`. Handlers have it describe itself, let `operations` and `check`
judge an alteration, and pass typed values on; a component gets the few it needs, never the whole.

Promised: names, types, defaults, checks, sources, synonyms and refusals are Kafka 4.3.1's. Nothing here
reads a file, a clock or a socket. Not promised: that an option has an effect; `Option.honoured` says so.
"""
