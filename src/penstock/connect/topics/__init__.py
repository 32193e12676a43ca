"""Where the workers of a group keep what they share: the topics of configs and of statuses, read to their ends and followed
(`following`), written (`writing`), and both together as one book (`book`), with one in memory for a standalone worker.

The leader writes the topic of configs, in transactions under the name that Kafka Connect's leader has: who begins to lead fences
whoever led before. All servers read what was committed.
"""
