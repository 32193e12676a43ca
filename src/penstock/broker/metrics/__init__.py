"""What the broker tells Prometheus: `facts` copies the state, on the loop; `page` makes the text, in a thread.

`client_metrics` takes what clients push of their own metrics (KIP-714), and `client_page` is their part of the text.
"""
