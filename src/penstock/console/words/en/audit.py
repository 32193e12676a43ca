"""The audit log."""

WORDS = {
    "audit.title": "Audit log",
    "audit.subtitle": "Who changed what; from the topic {topic}",
    "audit.none": "This console keeps no audit log in a topic: console.yaml says where, under audit.",
    "audit.search": "Search visitors, names and changes",
    "audit.time": "Time",
    "audit.visitor": "Visitor",
    "audit.cluster": "Cluster",
    "audit.what": "What",
    "audit.resource": "Of what",
    "audit.outcome": "Outcome",
    "audit.error": "Error",
}
