"""The table of error codes beside Apache Kafka's own."""

import subprocess
from pathlib import Path

from penstock.model.errors import ErrorCode
from simulation.apache.java import java_executable, libs_directory

PRINT_ERRORS = """
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

class PrintErrors {
    public static void main(String[] words) {
        for (Errors error : Errors.values()) {
            System.out.println(error.code() + " " + error + " " + (error.exception() instanceof RetriableException));
        }
    }
}
"""


def test_codes_names_and_what_is_retriable_are_those_of_apache_kafka(tmp_path: Path) -> None:
    program = tmp_path / "PrintErrors.java"
    program.write_text(PRINT_ERRORS)
    command = [java_executable(), "-cp", f"{libs_directory()}/*", str(program)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout

    theirs = [line.split() for line in printed.splitlines()]
    ours = [[str(int(code)), code.name, str(code.retriable).lower()] for code in ErrorCode]
    assert ours == theirs
