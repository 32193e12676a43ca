"""What is written and answered for each request that changes something. Pure: a state and a request become a `Decision`, or a
`Refusal` is raised. What is slow (parsing, comparing) has been done before, and comes in as a value."""
