"""Changes of what the cluster knows: decided by `penstock.controller`, written to the metadata tree, then made real here.

`changes` is the one way through: check, write, apply; `effects` is what follows from it on this broker. `topics` and
`configs` are what administration asks for; `producer_ids` hands out blocks of ids; `unfinished` finds what a crash left half
done.
"""
