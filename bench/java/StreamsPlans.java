import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Locale;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/**
 * The plans of bench/clients/stream_plans.py as Kafka Streams has them, one at a time, by the same words on standard input:
 *
 *     start KIND APPLICATION SOURCE TABLE TARGET GUARANTEE     answered with "running", once its threads have partitions
 *     stop                                                     answered with "stopped"
 *
 * Arguments: bootstrap servers, the folder of its state, the number of threads.
 */
public class StreamsPlans {
    static final Duration STOP = Duration.ofSeconds(30);

    public static void main(String[] arguments) throws Exception {
        BufferedReader words = new BufferedReader(new InputStreamReader(System.in));
        KafkaStreams running = null;
        say("ready");
        for (String line = words.readLine(); line != null; line = words.readLine()) {
            String[] given = line.split(" ");
            if (given[0].equals("start")) {
                running = start(given, arguments);
                say("running");
            } else if (running != null) {
                running.close(STOP);
                running.cleanUp();
                running = null;
                say("stopped");
            }
        }
        if (running != null) {
            running.close(STOP);
        }
    }

    static void say(String word) {
        System.out.println(word);
        System.out.flush();
    }

    static KafkaStreams start(String[] given, String[] arguments) throws InterruptedException {
        StreamsBuilder builder = new StreamsBuilder();
        build(given[1], builder, given[3], given[4], given[5]);
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, given[2]);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[1]);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, arguments[2]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, given[6]);
        // Each change of a table goes out, as it does on the other side.
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        CountDownLatch isRunning = new CountDownLatch(1);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                isRunning.countDown();
            } else if (now == KafkaStreams.State.ERROR) {
                System.err.println("the streams have failed");
                Runtime.getRuntime().halt(1);
            }
        });
        streams.start();
        isRunning.await();
        return streams;
    }

    static void build(String kind, StreamsBuilder builder, String source, String table, String target) {
        KStream<String, String> stream = builder.stream(source);
        switch (kind) {
            case "stateless":
                stream.filter((key, value) -> !value.endsWith("!"))
                    .mapValues(value -> value.toUpperCase(Locale.ROOT))
                    .to(target);
                break;
            case "count":
                stream.groupByKey().count().toStream().to(target, Produced.with(Serdes.String(), Serdes.Long()));
                break;
            case "window-count":
                stream.groupByKey()
                    .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofHours(1)))
                    .count()
                    .toStream()
                    .to(target, Produced.with(
                        WindowedSerdes.timeWindowedSerdeFrom(String.class, 60_000), Serdes.Long()));
                break;
            case "join":
                stream.join(builder.<String, String>table(table), (value, name) -> value + name).to(target);
                break;
            case "latest":
                stream.groupByKey()
                    .aggregate(
                        () -> "0 ",
                        (key, value, state) ->
                            (Long.parseLong(state.substring(0, state.indexOf(' '))) + 1) + " " + value,
                        Materialized.with(Serdes.String(), Serdes.String()))
                    .toStream()
                    .to(target);
                break;
            default:
                throw new IllegalArgumentException(kind);
        }
    }
}
