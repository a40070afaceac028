import java.io.FileOutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/**
 * Runs scenarios with the official Java client, one JSON line for each:
 * {@code Driver SERVICE_URL ADMIN_URL NAMESPACE FOLDER [SCENARIO ...]}.
 */
public class Driver {
    private static final int AT_ONCE = 8;

    interface Scenario {
        Map<String, Object> run(Place place) throws Exception;
    }

    private static final Map<String, Scenario> SCENARIOS = new LinkedHashMap<>();

    static {
        SCENARIOS.put("exclusive", Consuming::exclusive);
        SCENARIOS.put("failover", Consuming::failover);
        SCENARIOS.put("shared", Consuming::shared);
        SCENARIOS.put("key_shared", Consuming::keyShared);
        SCENARIOS.put("regex", Consuming::regex);
        SCENARIOS.put("many_topics", Consuming::manyTopics);
        SCENARIOS.put("nack", Consuming::nack);
        SCENARIOS.put("dead_letter", Consuming::deadLetter);
        SCENARIOS.put("batch_index", Consuming::batchIndex);
        SCENARIOS.put("delayed", Consuming::delayed);
        SCENARIOS.put("unsubscribe", Consuming::unsubscribe);
        SCENARIOS.put("plain", Producing::plain);
        SCENARIOS.put("ordering_key", Producing::orderingKey);
        SCENARIOS.put("batched", Producing::batched);
        SCENARIOS.put("compressed", Producing::compressed);
        SCENARIOS.put("chunked", Producing::chunked);
        SCENARIOS.put("access_modes", Producing::accessModes);
        SCENARIOS.put("producer_names", Producing::producerNames);
        SCENARIOS.put("encrypted", Producing::encrypted);
        SCENARIOS.put("partitioned", Producing::partitioned);
        SCENARIOS.put("non_persistent", Producing::nonPersistent);
        SCENARIOS.put("transactions", Producing::transactions);
        SCENARIOS.put("reader", Reading::reader);
        SCENARIOS.put("reader_at", Reading::readerAt);
        SCENARIOS.put("batched_reader", Reading::batchedReader);
        SCENARIOS.put("seek_id", Reading::seekId);
        SCENARIOS.put("seek_time", Reading::seekTime);
        SCENARIOS.put("last_id", Reading::lastId);
        SCENARIOS.put("table_view", Reading::tableView);
        SCENARIOS.put("schema_string", Typed::schemaString);
        SCENARIOS.put("schema_json", Typed::schemaJson);
        SCENARIOS.put("schema_avro", Typed::schemaAvro);
        SCENARIOS.put("schema_deleted", Typed::schemaDeleted);
        SCENARIOS.put("missing_topic", Typed::missingTopic);
        SCENARIOS.put("http_lookup", Administering::httpLookup);
        SCENARIOS.put("deduplicated", Administering::deduplicated);
        SCENARIOS.put("compacted", Administering::compacted);
        SCENARIOS.put("restart", Restart::restart);
    }

    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[3]);
        System.setErr(new PrintStream(new FileOutputStream(folder.resolve("client.log").toFile()), true));
        Collection<String> names = Arrays.asList(arguments).subList(4, arguments.length);
        if (names.isEmpty()) {
            names = SCENARIOS.keySet().stream().filter(name -> !name.equals("restart")).toList();
        }
        ExecutorService pool = Executors.newFixedThreadPool(AT_ONCE);
        for (String name : names) {
            Place place = new Place(arguments[0], arguments[1], arguments[2], folder, name);
            pool.submit(() -> System.out.println(json(run(place))));
        }
        pool.shutdown();
        pool.awaitTermination(10, TimeUnit.MINUTES);
        System.exit(0);
    }

    private static Map<String, Object> run(Place place) {
        long started = System.currentTimeMillis();
        Map<String, Object> line = Place.result("scenario", place.name);
        try (place) {
            line.put("result", SCENARIOS.get(place.name).run(place));
        } catch (Throwable problem) {
            StringWriter trace = new StringWriter();
            problem.printStackTrace(new PrintWriter(trace));
            line.put("error", problem.toString());
            line.put("trace", trace.toString());
        }
        line.put("seconds", (System.currentTimeMillis() - started) / 1000.0);
        return line;
    }

    static String json(Object value) {
        if (value instanceof Map<?, ?> map) {
            return map.entrySet().stream()
                    .map(entry -> json(entry.getKey()) + ": " + json(entry.getValue()))
                    .collect(Collectors.joining(", ", "{", "}"));
        }
        if (value instanceof List<?> list) {
            return list.stream().map(Driver::json).collect(Collectors.joining(", ", "[", "]"));
        }
        if (value instanceof String text) {
            StringBuilder found = new StringBuilder("\"");
            for (char letter : text.toCharArray()) {
                if (letter == '"' || letter == '\\') {
                    found.append('\\').append(letter);
                } else if (letter < ' ') {
                    found.append(String.format("\\u%04x", (int) letter));
                } else {
                    found.append(letter);
                }
            }
            return found.append('"').toString();
        }
        return String.valueOf(value);
    }
}
