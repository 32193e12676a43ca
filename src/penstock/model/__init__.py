"""The vocabulary: error codes, API keys, ids, addresses, internal topics, patterns. Pure, imports nothing of ours, and is
imported by all."""
