"""What a person sees of a bug of ours: one line, and how to see more."""

TRACE_VARIABLE = "PENSTOCK_TRACE"


def unexpected(error: Exception) -> str:
    return f"unexpected {type(error).__name__}: {error} ({TRACE_VARIABLE}=1 shows where)"
