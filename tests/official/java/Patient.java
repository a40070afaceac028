import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;

/** The client as a program that the proof clients.patience talks to: {@code Patient FOLDER}. See tests/proof/patience/program.py. */
public class Patient {
    private static final int SECONDS = 5;

    private PulsarClient client;
    private Consumer<byte[]> consumer;
    private Producer<byte[]> producer;

    private String does(String[] words) {
        try {
            switch (words[1]) {
                case "consumer" -> {
                    open(words[2]);
                    consumer = client.newConsumer().topic(words[3]).subscriptionName("s").subscribe();
                }
                case "producer" -> {
                    open(words[2]);
                    producer = client.newProducer().topic(words[3]).sendTimeout(SECONDS, TimeUnit.SECONDS).create();
                }
                case "use" -> {
                    if (producer != null) {
                        producer.send(new byte[] {'x'});
                        break;
                    }
                    Message<byte[]> message = consumer.receive(SECONDS, TimeUnit.SECONDS);
                    if (message == null) {
                        return "Timeout";
                    }
                    consumer.acknowledge(message);
                }
                case "last" -> consumer.getLastMessageIds();
                case "seek" -> consumer.seek(MessageId.earliest);
                default -> client.shutdown();
            }
            return "ok";
        } catch (PulsarClientException error) {
            return error.getClass().getSimpleName().replaceAll("Exception$", "");
        }
    }

    private void open(String url) throws PulsarClientException {
        client = PulsarClient.builder().serviceUrl(url).operationTimeout(SECONDS, TimeUnit.SECONDS)
                .lookupTimeout(SECONDS, TimeUnit.SECONDS).build();
    }

    public static void main(String[] arguments) throws Exception {
        System.setErr(new PrintStream(new FileOutputStream(Path.of(arguments[0], "client-java.log").toFile()), true));
        Map<String, Patient> cells = new ConcurrentHashMap<>();
        ExecutorService threads = Executors.newCachedThreadPool();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            threads.execute(() -> {
                String word = cells.computeIfAbsent(words[0], cell -> new Patient()).does(words);
                synchronized (System.out) {
                    System.out.println(words[0] + " " + word);
                }
            });
        }
        System.exit(0);
    }
}
