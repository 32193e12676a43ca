-- The topics of the laboratory as streams and tables. None of these statements runs a query of its own: bin/ksql http://localhost:8088
-- and the console ask them when somebody wants to know.

CREATE SOURCE TABLE trabalhadores (
    trabalhador VARCHAR PRIMARY KEY, sector VARCHAR, sex VARCHAR, age INT, height_cm DOUBLE, weight_kg DOUBLE
) WITH (KAFKA_TOPIC = 'bioimpedancia.trabalhador', KEY_FORMAT = 'KAFKA', VALUE_FORMAT = 'JSON');

CREATE STREAM metricas (
    trabalhador VARCHAR KEY, `at` VARCHAR, frequency_khz DOUBLE, resistance_ohm DOUBLE, reactance_ohm DOUBLE
) WITH (
    KAFKA_TOPIC = 'bioimpedancia.metrica', KEY_FORMAT = 'KAFKA', VALUE_FORMAT = 'JSON',
    TIMESTAMP = '`at`', TIMESTAMP_FORMAT = 'yyyy-MM-dd''T''HH:mm:ss.SSSXXX'
);

CREATE STREAM resumo (
    setor VARCHAR KEY, sector VARCHAR, `begin` VARCHAR, measurements BIGINT, fat_free_mass_kg DOUBLE, fat_percent DOUBLE,
    phase_angle_degrees DOUBLE
) WITH (KAFKA_TOPIC = 'bioimpedancia.resumo', KEY_FORMAT = 'KAFKA', VALUE_FORMAT = 'JSON');

CREATE STREAM estacoes (estacao_id VARCHAR KEY, estacao VARCHAR, celsius DOUBLE, umidade INT)
    WITH (KAFKA_TOPIC = 'bioimpedancia.estacao', KEY_FORMAT = 'KAFKA', VALUE_FORMAT = 'JSON');
