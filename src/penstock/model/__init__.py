"""The vocabulary: error codes, API keys, ids. Pure, imports nothing of ours, imported by all."""
