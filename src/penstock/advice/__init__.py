"""What is unwise in a cluster (`doctor`), and what a cluster should be (`plan`)."""
