"""The script that finds or fetches a newer Python. `make test` runs the unit tests on the one that it names."""

import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "newer-python"


def test_a_found_python_is_used_as_it_is(tmp_path: Path) -> None:
    program = tmp_path / "python3.13"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    done = subprocess.run(
        [SCRIPT, "3.13"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(program)


def test_pyenvs_versions_are_found_and_a_program_that_fails_is_passed_over(tmp_path: Path) -> None:
    shim = tmp_path / "python3.13"
    shim.write_text("#!/bin/sh\nexit 127\n")
    program = tmp_path / ".pyenv" / "versions" / "3.13.5" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 0\n")
    for each in (shim, program):
        each.chmod(0o755)
    done = subprocess.run(
        [SCRIPT, "3.13"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(program)


def test_a_version_that_is_not_supported_is_refused_in_one_line() -> None:
    done = subprocess.run([SCRIPT, "3.10"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "newer-python: '3.10' is none of 3.12, 3.13 and 3.14\n"
