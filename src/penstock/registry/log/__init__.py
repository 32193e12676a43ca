"""The topic `_schemas`: made and checked (`topic`), read to its end and followed (`following`), written (`writing`)."""
