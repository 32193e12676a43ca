"""What `Cluster` offers, one class for each kind of thing. Each call borrows a client, asks, and gives it back (`clients`)."""
