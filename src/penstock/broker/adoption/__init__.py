"""Logs whose metadata this cluster does not have: those that Apache Kafka wrote, or whose metadata is lost.

`adopt` makes topics of them, with the names and configs of Kafka's own metadata where that lies beside the logs
(`kraft_metadata`); `taken_producer_ids` keeps new producers from getting ids that the logs remember.

And running clusters of Apache Kafka: `joining` says what stands in the way of a broker that is to be a member of one (`look` for
`penstock join`, `asking` for the questions to its brokers).
"""
