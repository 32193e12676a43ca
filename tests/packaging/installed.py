"""Penstock as pip installs it: the wheel, and empty environments with it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Self

from tests.docs.pages import ROOT, blocks

DEADLINE_SECONDS = 400


def build_wheel(folder: Path) -> Path:
    subprocess.run(
        [ROOT / "scripts" / "wheel", folder, sys.executable],
        check=True,
        capture_output=True,
        timeout=DEADLINE_SECONDS,
    )
    (wheel,) = folder.glob("penstock-*.whl")
    return wheel


class Installation:
    """An environment that had nothing in it but what the wheel and one extra ask for."""

    def __init__(self, folder: Path, wheel: Path, extra: str | None) -> None:
        self.folder = folder
        self.programs = folder / "environment" / "bin"
        environment = folder / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        wanted = f"penstock[{extra}]" if extra else "penstock"
        # No compiled modules: most of them are never loaded, and they are half of the time.
        command = [sys.executable, "-m", "pip", "--python", self.programs / "python", "install", "--quiet"]
        command += ["--no-compile", "--disable-pip-version-check", "--constraint", ROOT / "constraints.txt"]
        done = subprocess.run(
            [*command, f"{wanted} @ {wheel.as_uri()}"],
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.programs.parent)  # up to a gigabyte, which pytest would keep

    def variables(self, **more: str) -> dict[str, str]:
        """Nothing of the checkout: neither its folder nor its programs."""
        kept = {name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ}
        return {**kept, "PATH": f"{self.programs}:/usr/bin:/bin", "HOME": str(self.folder), **more}

    def run(self, command: str, **variables: str) -> str:
        done = subprocess.run(
            ["timeout", "-k", "5", str(DEADLINE_SECONDS), "sh", "-c", command],
            cwd=self.folder,
            env=self.variables(**variables),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def python(self, program: str, **variables: str) -> str:
        path = self.folder / "program.py"
        path.write_text(program)
        return self.run(f"python {path}", **variables)


def tour() -> list[str]:
    """The commands of the README's tour under the names that pip installs: `bin/kafka-topics.sh` is `kafka-topics`."""
    lines = [
        re.sub(r"\bbin/([a-z-]+)(?:\.sh)?", r"\1", line[2:])
        for block in blocks((ROOT / "README.md").read_text(), "console")
        for line in block.splitlines()
        if line.startswith("$ ") and "bin/" in line
    ]
    assert any("penstock topics create" in line for line in lines), "the README has lost its tour"
    assert any("kafka-topics " in line for line in lines), "the README's tour shows no tool of Kafka's"
    return lines
