// A source of records at a fixed rate, for Apache's Connect: what bench/connect_plugins/paced_source.py is for ours. A record
// has in its value when it was due.

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

public class PacedSourceConnector extends SourceConnector {
    private Map<String, String> config;

    @Override public String version() { return "1"; }
    @Override public void start(Map<String, String> given) { config = given; }
    @Override public Class<? extends Task> taskClass() { return PacedTask.class; }
    @Override public List<Map<String, String>> taskConfigs(int most) { return List.of(config); }
    @Override public void stop() { }

    @Override public ConfigDef config() {
        return new ConfigDef()
            .define("topic", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "The topic.")
            .define("rate", ConfigDef.Type.INT, 1000, ConfigDef.Importance.HIGH, "Records a second.");
    }

    public static class PacedTask extends SourceTask {
        private static final Map<String, ?> PARTITION = Collections.singletonMap("source", "paced");
        private String topic;
        private long intervalNs;
        private long began;
        private long number;
        private final String padding = ".".repeat(79);

        @Override public String version() { return "1"; }
        @Override public void stop() { }

        @Override public void start(Map<String, String> given) {
            topic = given.get("topic");
            intervalNs = 1_000_000_000L / Integer.parseInt(given.getOrDefault("rate", "1000"));
            began = System.nanoTime();
        }

        @Override public List<SourceRecord> poll() throws InterruptedException {
            long waitNs = began + number * intervalNs - System.nanoTime();
            if (waitNs > 0) Thread.sleep(waitNs / 1_000_000, (int) (waitNs % 1_000_000));
            long now = System.nanoTime();
            List<SourceRecord> records = new ArrayList<>();
            for (long due; (due = began + number * intervalNs) <= now; number++) {
                String value = String.format("%020d", due) + " " + padding;
                records.add(new SourceRecord(PARTITION, Collections.singletonMap("number", number), topic, null,
                    Schema.STRING_SCHEMA, Long.toString(number), Schema.STRING_SCHEMA, value));
            }
            return records;
        }
    }
}
