import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;

/**
 * Publishes for some seconds and consumes what it published, first unmeasured, so that all is compiled:
 * {@code Rates SERVICE_URL SERVER_PID TOPIC BATCH SECONDS}. Prints rates, and the server's processor time, as JSON.
 */
public class Rates {
    private static final int SIZE_BYTES = 1_024;
    private static final int MOST_PENDING = 4_000;
    private static final int RECEIVER_QUEUE = 1_000;
    private static final int PATIENCE_SECONDS = 60;
    private static final double TICKS_PER_SECOND = 100;
    private static final int USER = 11, SYSTEM = 12;

    public static void main(String[] arguments) throws Exception {
        Path stat = Path.of("/proc", arguments[1], "stat");
        int batch = Integer.parseInt(arguments[3]);
        double seconds = Double.parseDouble(arguments[4]);
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build()) {
            measured(client, stat, arguments[2] + "-first", batch, seconds);
            System.out.println(measured(client, stat, arguments[2], batch, seconds));
        }
        System.exit(0);
    }

    private static String measured(PulsarClient client, Path stat, String topic, int batch, double seconds)
            throws Exception {
        consumer(client, topic).close(); // The subscription is there before the first message.
        Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(batch > 1)
                .batchingMaxMessages(Math.max(batch, 2)).batchingMaxPublishDelay(10, TimeUnit.MILLISECONDS)
                .maxPendingMessages(MOST_PENDING).blockIfQueueFull(true).create();
        byte[] payload = new byte[SIZE_BYTES];
        double cpu = cpuSeconds(stat);
        long messages = 0, start = System.nanoTime(), end = start + (long) (seconds * 1e9);
        for (; System.nanoTime() < end; messages++) {
            producer.sendAsync(payload);
        }
        producer.flush();
        long published = System.nanoTime();
        double cpuIn = cpuSeconds(stat) - cpu;
        producer.close();
        cpu = cpuSeconds(stat);
        long opened = System.nanoTime();
        Consumer<byte[]> consumer = consumer(client, topic);
        for (long left = messages; left > 0; left--) {
            Message<byte[]> message = consumer.receive(PATIENCE_SECONDS, TimeUnit.SECONDS);
            consumer.acknowledgeAsync(message);
        }
        long consumed = System.nanoTime();
        double cpuOut = cpuSeconds(stat) - cpu;
        consumer.close();
        return String.format(java.util.Locale.ROOT,
                "{\"in_per_second\": %f, \"in_cpu_micros\": %f, \"out_per_second\": %f, \"out_cpu_micros\": %f}",
                messages * 1e9 / (published - start), cpuIn * 1e6 / messages,
                messages * 1e9 / (consumed - opened), cpuOut * 1e6 / messages);
    }

    private static Consumer<byte[]> consumer(PulsarClient client, String topic) throws Exception {
        return client.newConsumer().topic(topic).subscriptionName("rates").receiverQueueSize(RECEIVER_QUEUE)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
    }

    /** The processor time of the server, from the kernel's books. */
    private static double cpuSeconds(Path stat) throws Exception {
        String line = Files.readString(stat);
        String[] fields = line.substring(line.lastIndexOf(')') + 2).split(" ");
        return (Long.parseLong(fields[USER]) + Long.parseLong(fields[SYSTEM])) / TICKS_PER_SECOND;
    }
}
