import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionType;

/**
 * Clients under load, with the timeouts that they have by themselves: {@code Load FOLDER WAY=URL ...}. A line on
 * standard input ends the producing; what the calls did is the last line.
 */
public class Load {
    private static final int TOPICS = 2;
    private static final int PAUSE_MILLIS = 20;
    private static final int RECEIVE_MILLIS = 500;
    private static final int QUIET_MILLIS = 30_000;
    private static final Map<String, SubscriptionType> TYPES = Map.of(
            "exclusive", SubscriptionType.Exclusive,
            "shared", SubscriptionType.Shared,
            "failover", SubscriptionType.Failover,
            "key_shared", SubscriptionType.Key_Shared);

    interface Call<T> {
        T make() throws PulsarClientException;
    }

    /** The calls of all ways: how many of each kind, the longest, and what failed. */
    private static final Map<String, Object> COUNTS = new TreeMap<>();

    private static final Map<String, Object> LONGEST = new TreeMap<>();
    private static final List<Object> FAILURES = new ArrayList<>();

    private static synchronized void note(String kind, double seconds) {
        COUNTS.merge(kind, 1L, (one, other) -> (Long) one + (Long) other);
        LONGEST.merge(kind, seconds, (one, other) -> Math.max((Double) one, (Double) other));
    }

    private static synchronized void failed(String kind, Exception error, double seconds) {
        FAILURES.add(String.format("%s: %s after %.1f s", kind, error.getClass().getSimpleName(), seconds));
    }

    private static double since(long began) {
        return (System.nanoTime() - began) / 1e9;
    }

    /** Make a call; null if it failed. */
    private static <T> T made(String kind, Call<T> call) {
        long began = System.nanoTime();
        try {
            return call.make();
        } catch (PulsarClientException error) {
            failed(kind, error, since(began));
            return null;
        } finally {
            note(kind, since(began));
        }
    }

    private final String name;
    private final PulsarClient client;
    private final Map<String, Set<String>> receipted = new TreeMap<>();
    private final Map<String, Set<String>> received = new ConcurrentHashMap<>();
    private final AtomicLong repeated = new AtomicLong();
    private final List<Thread> producing = new ArrayList<>();
    private volatile boolean stopping;

    Load(String name, String url) throws PulsarClientException {
        this.name = name;
        this.client = PulsarClient.builder().serviceUrl(url).build();
    }

    void start() throws PulsarClientException {
        Pattern everything = Pattern.compile("persistent://public/default/" + name + "-[0-9]");
        List<Producer<byte[]>> producers = new ArrayList<>();
        for (int number = 0; number < TOPICS; number++) {
            String topic = "persistent://public/default/" + name + "-" + number;
            receipted.put(topic, ConcurrentHashMap.newKeySet());
            producers.add(client.newProducer().topic(topic).create());
            for (Map.Entry<String, SubscriptionType> type : TYPES.entrySet()) {
                consumed(type.getKey() + " " + topic, client.newConsumer().topic(topic)
                        .subscriptionName(type.getKey()).subscriptionType(type.getValue()).subscribe());
            }
        }
        consumed("pattern ", client.newConsumer().topicsPattern(everything).subscriptionName("pattern").subscribe());
        producers.forEach(producer -> begun(producing, () -> produce(producer)));
        begun(producing, () -> list(everything));
    }

    private static void begun(List<Thread> threads, Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        threads.add(thread);
        thread.start();
    }

    private void produce(Producer<byte[]> producer) {
        for (int number = 0; !stopping; number++) {
            String payload = producer.getTopic() + " " + number, key = String.valueOf(number % 7);
            if (made("send", () -> producer.newMessage().key(key).value(payload.getBytes()).send()) != null) {
                receipted.get(producer.getTopic()).add(payload);
            }
            pause();
        }
    }

    /** Attach a consumer of a pattern again and again: each time the topics are listed. */
    private void list(Pattern everything) {
        while (!stopping) {
            Consumer<byte[]> consumer = made("subscribe to a pattern", () ->
                    client.newConsumer().topicsPattern(everything).subscriptionName("again").subscribe());
            if (consumer != null) {
                made("close", () -> {
                    consumer.close();
                    return true;
                });
            }
            pause();
        }
    }

    private void consumed(String which, Consumer<byte[]> consumer) {
        received.put(which, ConcurrentHashMap.newKeySet());
        begun(new ArrayList<>(), () -> consume(which, consumer));
    }

    private void consume(String which, Consumer<byte[]> consumer) {
        long last = System.nanoTime();
        while (true) {
            Message<byte[]> message = null;
            try {
                message = consumer.receive(RECEIVE_MILLIS, TimeUnit.MILLISECONDS);
            } catch (PulsarClientException error) {
                failed("receive", error, 0);
            }
            if (message == null) {
                continue;
            }
            if (!stopping) {
                note("between two messages, " + which.split(" ")[0], since(last));
            }
            last = System.nanoTime();
            if (!received.get(which).add(new String(message.getData()))) {
                repeated.incrementAndGet();
            }
            Message<byte[]> got = message;
            made("acknowledge", () -> {
                consumer.acknowledge(got);
                return true;
            });
        }
    }

    private static void pause() {
        try {
            Thread.sleep(PAUSE_MILLIS);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Return how many receipted messages each kind of subscription did not get. */
    private Map<String, Object> missing() {
        Map<String, Object> found = new TreeMap<>();
        received.forEach((which, got) -> {
            String[] parts = which.split(" ", 2);
            long left = receipted.entrySet().stream()
                    .filter(entry -> parts[1].isEmpty() || entry.getKey().equals(parts[1]))
                    .flatMap(entry -> entry.getValue().stream())
                    .filter(payload -> !got.contains(payload))
                    .count();
            found.merge(parts[0], left, (one, other) -> (Long) one + (Long) other);
        });
        return found;
    }

    private void finish() throws InterruptedException {
        stopping = true;
        for (Thread thread : producing) {
            thread.join();
        }
        long last = System.nanoTime();
        Map<String, Object> left = missing();
        while (left.values().stream().anyMatch(count -> (Long) count > 0) && since(last) < QUIET_MILLIS / 1e3) {
            Thread.sleep(100);
            Map<String, Object> before = left;
            left = missing();
            last = left.equals(before) ? last : System.nanoTime();
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.setErr(new PrintStream(
                new FileOutputStream(Path.of(arguments[0], "client-java.log").toFile()), true));
        List<Load> ways = new ArrayList<>();
        for (int place = 1; place < arguments.length; place++) {
            String[] parts = arguments[place].split("=", 2);
            ways.add(new Load(parts[0], parts[1]));
        }
        for (Load way : ways) {
            way.start();
        }
        System.out.println("\"started\"");
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        Map<String, Object> missing = new LinkedHashMap<>();
        long receipted = 0, repeated = 0;
        for (Load way : ways) {
            way.finish();
            missing.put(way.name, way.missing());
            receipted += way.receipted.values().stream().mapToLong(Set::size).sum();
            repeated += way.repeated.get();
        }
        synchronized (Load.class) {
            System.out.println(Driver.json(Place.result(
                    "calls", COUNTS, "longest_seconds", LONGEST, "failures", FAILURES,
                    "receipted", receipted, "repeated", repeated, "missing", missing)));
        }
        // Threads still wait within the client.
        Runtime.getRuntime().halt(0);
    }
}
