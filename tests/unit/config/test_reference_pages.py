import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_reference_pages_say_what_the_tables_say() -> None:
    script = ROOT / "scripts" / "generate_reference.py"
    result = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, timeout=30
    )
    assert result.returncode == 0, result.stderr
