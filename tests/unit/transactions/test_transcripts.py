"""Runs `tests/transcripts/transactions/*.txt` against a TransactionShard; `simulation.transcripts` says how to read
them.

To change a transcript, run this with REWRITE_TRANSCRIPTS=1 in the environment and read the difference.
"""

import os
from pathlib import Path

import pytest

from simulation.transcripts import run_transcript
from tests.unit.transactions.adapter import TransactionAdapter

FILES = sorted(Path(__file__).parents[2].joinpath("transcripts/transactions").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_transcript_is_what_happens(path: Path) -> None:
    run_transcript(path, TransactionAdapter(), rewrite=bool(os.environ.get("REWRITE_TRANSCRIPTS")))
