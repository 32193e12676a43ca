"""How far streams are, for others: offsets in a consumer group (`lag`, `group_listener`), metrics and a line (`progress`)."""
