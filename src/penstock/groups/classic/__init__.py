"""The classic protocol, one file per request; `rebalance.py` holds the moves that they share.

Each function works on one `state.Group` and writes what should happen into its `Turn`.
"""
