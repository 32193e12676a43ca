"""The connectors that come along: a module or a folder each, with a row in `penstock.connect.plugins`."""
