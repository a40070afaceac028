import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;

/**
 * Sends as fast as it can to a topic whose only subscription does not read: {@code Flood SERVICE_URL TOPIC MEGABYTES}.
 * It has no settings but those that a client has by itself. What had a receipt, and the first failure, are printed as
 * JSON.
 */
public class Flood {
    private static final int SIZE_BYTES = 1_024;

    public static void main(String[] arguments) throws Exception {
        long messages = Long.parseLong(arguments[2]) * 1024 * 1024 / SIZE_BYTES;
        AtomicLong receipted = new AtomicLong();
        AtomicReference<String> failed = new AtomicReference<>("");
        long start = System.nanoTime();
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build();
                Consumer<byte[]> idle = client.newConsumer().topic(arguments[1]).subscriptionName("idle")
                        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
            Producer<byte[]> producer = client.newProducer().topic(arguments[1]).blockIfQueueFull(true).create();
            byte[] payload = new byte[SIZE_BYTES];
            for (long sent = 0; sent < messages && failed.get().isEmpty(); sent++) {
                producer.sendAsync(payload).whenComplete((id, error) -> {
                    if (error == null) {
                        receipted.incrementAndGet();
                    } else {
                        failed.compareAndSet("", error.toString());
                    }
                });
            }
            if (failed.get().isEmpty()) {
                producer.flushAsync().get(60, TimeUnit.SECONDS);
            }
        } catch (Exception error) {
            failed.compareAndSet("", error.toString());
        }
        System.out.printf(Locale.ROOT, "{\"receipted\": %d, \"seconds\": %f, \"failed\": \"%s\"}%n", receipted.get(),
                (System.nanoTime() - start) / 1e9, failed.get().replaceAll("[\"\\\\\\n]", " "));
        System.exit(0);
    }
}
