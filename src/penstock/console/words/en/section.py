"""Parts of pages that are looked up."""

WORDS = {
    "section.retry": "Try again",
}
