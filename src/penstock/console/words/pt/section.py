"""Partes de páginas que são consultadas."""

WORDS = {
    "section.retry": "Tentar de novo",
}
