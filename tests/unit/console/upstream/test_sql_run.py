"""What of statements comes into the audit log."""

from __future__ import annotations

from penstock.console.upstream.sql_run import MAX_STATEMENT_CHARS, without_values


def test_texts_and_rows_are_left_out() -> None:
    made = "CREATE SOURCE CONNECTOR db WITH ('connection.password'='it''s s3cret');"
    found = without_values(f"{made}\nINSERT INTO pay VALUES ('ana', 12); SHOW TABLES;")
    assert found == "CREATE SOURCE CONNECTOR db WITH ('…'='…'); INSERT INTO pay VALUES …; SHOW TABLES;"


def test_a_semicolon_in_a_text_does_not_end_a_row() -> None:
    assert without_values("INSERT INTO a (b) VALUES ('x; y', 4711);") == "INSERT INTO a (b) VALUES …;"


def test_a_long_text_is_cut() -> None:
    assert len(without_values("SELECT " + "a, " * 1000)) == MAX_STATEMENT_CHARS
