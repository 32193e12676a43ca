"""What the broker tells Prometheus: `facts` copies the state, on the loop; `page` makes the text, in a thread."""
