"""O ecrã de pipelines."""

WORDS = {
    "pipelines.title": "Pipelines",
    "pipelines.subtitle": "Consultas de SQL e Spark, e programas de streams",
    "pipelines.count": "{count} pipelines",
    "pipelines.failed": "{count} com falha",
    "pipelines.kind": "Tipo",
    "pipelines.kind_sql": "SQL",
    "pipelines.kind_spark": "Spark",
    "pipelines.kind_streams": "Streams",
    "pipelines.state": "Estado",
    "pipelines.tier": "Nível",
    "pipelines.rate": "Linhas/s",
    "pipelines.latency": "Latência",
    "pipelines.lag": "Atraso",
    "pipelines.state_size": "Tamanho do estado",
    "pipelines.rows": "{count} linhas",
    "pipelines.watermark": "Marca de água",
    "pipelines.error": "Último erro",
    "pipelines.details": "Detalhes",
    "pipelines.reads": "Lê",
    "pipelines.writes": "Escreve",
    "pipelines.to_group": "O seu grupo",
    "pipelines.latency_spark": "A latência é o tempo que o último lote demorou.",
    "pipelines.none": (
        "Nenhum pipeline é conhecido. As consultas do servidor SQL e os grupos do Spark encontram-se "
        "sozinhos; para mais do Spark indique --spark-url."
    ),
}
