"""What Spark's Python workers are and have: which `interpreter`, a `daemon` that has imported what tasks need, and, on
other machines, the package and its libraries as `shipping` sends and `shipped` takes them."""
