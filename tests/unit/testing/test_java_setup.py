import subprocess
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "java-setup"


def test_a_wrong_version_is_refused_with_one_line() -> None:
    done = subprocess.run([SCRIPT, "4.x"], capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "java-setup: '4.x' is not a version of Apache Kafka (for example 4.3.1)"
    ]
