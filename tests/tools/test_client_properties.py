"""The table of client properties beside Apache Kafka's own."""

import subprocess
from pathlib import Path

from penstock.client.properties import CONSUMER_NAMES, NAMES, PRODUCER_NAMES
from simulation.apache.java import java_executable, libs_directory

PRINT_NAMES = """
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;

class PrintNames {
    public static void main(String[] words) {
        System.out.println(String.join(" ", ConsumerConfig.configNames()));
        System.out.println(String.join(" ", ProducerConfig.configNames()));
        System.out.println(String.join(" ", AdminClientConfig.configNames()));
    }
}
"""
# Logins by a signed assertion, which our own client does not have. The command line knows librdkafka's names of them.
NOT_TAKEN = "sasl.oauthbearer.assertion."


def test_every_property_of_apache_kafkas_clients_is_known(tmp_path: Path) -> None:
    program = tmp_path / "PrintNames.java"
    program.write_text(PRINT_NAMES)
    command = [java_executable(), "-cp", f"{libs_directory()}/*", str(program)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    for line, known in zip(printed.splitlines(), (CONSUMER_NAMES, PRODUCER_NAMES, NAMES), strict=True):
        assert {name for name in line.split() if not name.startswith(NOT_TAKEN)} - set(known) == set()
