-- The demo's pipeline as SQL: `penstock sql-server --queries-file examples/demo/pipeline.sql`, or `ksql -f` at a server.
--
--     bioimpedancia.metrica ─ texts ─ rules, with the workers ─ refused ──────→ bioimpedancia.metrica.dlq
--                           └ rows ─ rules, with the workers ─ formula ─ windows → bioimpedancia.resumo

SET 'auto.offset.reset' = 'earliest';
SET 'processing.guarantee' = 'exactly_once_v2';

CREATE TABLE workers (
    worker VARCHAR PRIMARY KEY, sector VARCHAR, sex VARCHAR, age INT, height_cm DOUBLE, weight_kg DOUBLE
) WITH (KAFKA_TOPIC = 'bioimpedancia.trabalhador', KEY_FORMAT = 'KAFKA', VALUE_FORMAT = 'JSON');

-- The measurements as texts, so that what is not JSON is seen, too.
CREATE STREAM texts (worker VARCHAR KEY, text VARCHAR)
    WITH (KAFKA_TOPIC = 'bioimpedancia.metrica', FORMAT = 'KAFKA');

-- The first rule that applies is the cause.
CREATE STREAM judged WITH (KAFKA_TOPIC = 'bioimpedancia.metrica.judged', KEY_FORMAT = 'KAFKA', VALUE_FORMAT = 'JSON') AS
    SELECT worker,
        text,
        CASE
            WHEN NOT IS_JSON_STRING(text) THEN 'NotJson'
            WHEN EXTRACTJSONFIELD(text, '$.worker') IS NULL THEN 'MissingField'
            WHEN EXTRACTJSONFIELD(text, '$.at') IS NULL THEN 'MissingField'
            WHEN EXTRACTJSONFIELD(text, '$.frequency_khz') IS NULL THEN 'MissingField'
            WHEN EXTRACTJSONFIELD(text, '$.resistance_ohm') IS NULL THEN 'MissingField'
            WHEN EXTRACTJSONFIELD(text, '$.reactance_ohm') IS NULL THEN 'MissingField'
            WHEN CAST(EXTRACTJSONFIELD(text, '$.frequency_khz') AS DOUBLE) NOT BETWEEN 1 AND 1000 THEN 'OutOfRange'
            WHEN CAST(EXTRACTJSONFIELD(text, '$.resistance_ohm') AS DOUBLE) NOT BETWEEN 150 AND 1500 THEN 'OutOfRange'
            WHEN CAST(EXTRACTJSONFIELD(text, '$.reactance_ohm') AS DOUBLE) NOT BETWEEN 5 AND 300 THEN 'OutOfRange'
        END AS broken
    FROM texts EMIT CHANGES;

CREATE STREAM refused
    WITH (KAFKA_TOPIC = 'bioimpedancia.metrica.dlq', PARTITIONS = 1, KEY_FORMAT = 'KAFKA', VALUE_FORMAT = 'JSON') AS
    SELECT j.worker AS worker, IFNULL(broken, 'UnknownWorker') AS cause, text
    FROM judged j LEFT JOIN workers w ON j.worker = w.worker
    WHERE broken IS NOT NULL OR sector IS NULL
    EMIT CHANGES;

-- The measurements as rows, each at the time of its measurement. What cannot be read is refused above.
CREATE STREAM measurements (
    worker VARCHAR KEY, `at` VARCHAR, frequency_khz DOUBLE, resistance_ohm DOUBLE, reactance_ohm DOUBLE
) WITH (
    KAFKA_TOPIC = 'bioimpedancia.metrica', KEY_FORMAT = 'KAFKA', VALUE_FORMAT = 'JSON',
    TIMESTAMP = '`at`', TIMESTAMP_FORMAT = 'yyyy-MM-dd''T''HH:mm:ss.SSSXXX'
);

-- Body composition, still at the time of the measurement; a broker would delete a day of long ago.
CREATE STREAM bodies
    WITH (KAFKA_TOPIC = 'bioimpedancia.corpo', RETENTION_MS = -1, KEY_FORMAT = 'KAFKA', VALUE_FORMAT = 'JSON') AS
    SELECT m.worker AS worker,
        sector,
        weight_kg,
        height_cm * height_cm / resistance_ohm * 0.518E0 + weight_kg * 0.231E0 + reactance_ohm * 0.130E0
            + CASE WHEN sex = 'M' THEN 4.229E0 ELSE 0E0 END - 4.104E0 AS lean_kg,
        DEGREES(ATAN2(reactance_ohm, resistance_ohm)) AS angle
    FROM measurements m JOIN workers w ON m.worker = w.worker
    WHERE frequency_khz = 50 AND resistance_ohm BETWEEN 150 AND 1500 AND reactance_ohm BETWEEN 5 AND 300
    EMIT CHANGES;

-- Averages by hour and sector. A window is written once, two hours after its end.
CREATE TABLE summary WITH (KAFKA_TOPIC = 'bioimpedancia.resumo', KEY_FORMAT = 'KAFKA', VALUE_FORMAT = 'JSON') AS
    SELECT sector,
        AS_VALUE(sector) AS `sector`,
        FORMAT_TIMESTAMP(FROM_UNIXTIME(WINDOWSTART), 'yyyy-MM-dd''T''HH:mm:ss.SSSXXX') AS `begin`,
        FORMAT_TIMESTAMP(FROM_UNIXTIME(WINDOWEND), 'yyyy-MM-dd''T''HH:mm:ss.SSSXXX') AS `end`,
        COUNT(*) AS `measurements`,
        ROUND(AVG(lean_kg), 3) AS `fat_free_mass_kg`,
        ROUND(AVG((weight_kg - lean_kg) / weight_kg * 100E0), 3) AS `fat_percent`,
        ROUND(AVG(angle), 3) AS `phase_angle_degrees`
    FROM bodies WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 2 HOURS)
    GROUP BY sector
    EMIT FINAL;
