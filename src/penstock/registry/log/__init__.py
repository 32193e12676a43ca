"""The topic `_schemas`: read to its end and followed (`following`), written (`writing`)."""
