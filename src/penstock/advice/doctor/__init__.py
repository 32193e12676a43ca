"""What is wrong or unwise in a cluster, each with the numbers that show it and the command that mends it.

    from penstock.advice.doctor import examine
    from penstock.client.clients import Connection

    for finding in examine(Connection("localhost:9092")):
        print(finding.severity.value, finding.title)

The one path: `examination.examine` → `gathering` asks the cluster a few batched questions, twice with a pause between where rates
are wanted → `facts`, plain tuples → each check of `checks` (pure: facts in, findings out). Promised: nothing is changed, no
record is read, and what a login may not see is told as a finding, not taken for healthy. Not promised: a picture of one
instant.
"""

from penstock.advice.doctor.examination import examine
from penstock.advice.doctor.facts import ServiceFacts
from penstock.advice.doctor.finding import Finding, Severity, with_connection

__all__ = ["Finding", "ServiceFacts", "Severity", "examine", "with_connection"]
