import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;

/**
 * One topic beneath which something goes wrong: {@code Faulted FOLDER SERVICE_URL}. For each line, a topic, it
 * publishes and consumes with a client of its own, and says in a line what the application saw of it.
 */
public class Faulted {
    private static final int COUNT = 12;
    private static final int TIMEOUT_SECONDS = 6;
    private static final int QUIET_MILLIS = 3_000;

    interface Call<T> {
        T make() throws PulsarClientException;
    }

    private final List<String> errors = new ArrayList<>();

    private <T> T made(String kind, Call<T> call) {
        try {
            return call.make();
        } catch (PulsarClientException error) {
            errors.add(kind + ": " + error.getClass().getSimpleName().replaceAll("Exception$", ""));
            return null;
        }
    }

    private Map<String, Object> run(PulsarClient client, String topic) throws PulsarClientException {
        Set<String> sent = new HashSet<>(), received = new HashSet<>();
        int repeated = 0;
        Consumer<byte[]> consumer = made("subscribe", () -> client.newConsumer().topic(topic).subscriptionName("s").subscribe());
        Producer<byte[]> producer = made("create", () -> client.newProducer().topic(topic).enableBatching(false)
                .sendTimeout(TIMEOUT_SECONDS, TimeUnit.SECONDS).create());
        for (int number = 0; producer != null && number < COUNT; number++) {
            String payload = String.valueOf(number);
            if (made("send", () -> producer.send(payload.getBytes())) != null) {
                sent.add(payload);
            }
        }
        while (consumer != null && !received.containsAll(sent)) {
            Message<byte[]> message = made("receive", () -> consumer.receive(QUIET_MILLIS, TimeUnit.MILLISECONDS));
            if (message == null) {
                break;
            }
            repeated += received.add(new String(message.getData())) ? 0 : 1;
            made("acknowledge", () -> {
                consumer.acknowledge(message);
                return true;
            });
        }
        sent.removeAll(received);
        return Place.result("errors", errors, "received", received.size(), "missing", sent.size(), "repeated", repeated);
    }

    public static void main(String[] arguments) throws Exception {
        System.setErr(new PrintStream(
                new FileOutputStream(Path.of(arguments[0], "client-java.log").toFile()), true));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String topic = lines.readLine(); topic != null; topic = lines.readLine()) {
            PulsarClient client = PulsarClient.builder().serviceUrl(arguments[1])
                    .operationTimeout(TIMEOUT_SECONDS, TimeUnit.SECONDS).build();
            System.out.println(Driver.json(new Faulted().run(client, topic)));
            client.shutdown();
        }
        System.exit(0);
    }
}
