"""O registro de auditoria."""

WORDS = {
    "audit.title": "Auditoria",
    "audit.subtitle": "Quem mudou o quê; do tópico {topic}",
    "audit.none": "Este console não guarda a auditoria num tópico: console.yaml diz onde, em audit.",
    "audit.search": "Buscar visitantes, nomes e mudanças",
    "audit.time": "Hora",
    "audit.visitor": "Visitante",
    "audit.cluster": "Cluster",
    "audit.what": "O quê",
    "audit.resource": "De quê",
    "audit.outcome": "Resultado",
    "audit.error": "Erro",
}
