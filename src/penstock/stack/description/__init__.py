"""`penstock.yaml`: a whole stack in one file, checked before anything starts.

`table` says what may stand in it, by `forms`; the JSON Schema for editors (`json_schema`) and the page of reference are made of
the same table. `reading` goes from the text (`yaml_tree`) to a `Description` (`model`): a `Wish` for the stack's members, and the
`Contents`, which are what shall be in it. `cross_checks` has what no single entry can tell.

Promised: all mistakes of a file are told at once, each with its line and, where a word is wrong, the nearest right one. Not
promised: that a connector's configuration is right; only a worker knows that.
"""
