import java.io.FileOutputStream;
import java.io.PrintStream;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;

/**
 * One consumer of a pattern: {@code Discovering SERVICE_URL PATTERN PERIOD OPERATION_SECONDS}.
 * Says subscribed or refused, and closes the consumer when its standard input ends.
 */
public class Discovering {
    public static void main(String[] arguments) throws Exception {
        System.setErr(new PrintStream(new FileOutputStream("java.log"), true));
        PulsarClient client = PulsarClient.builder()
                .serviceUrl(arguments[0])
                .operationTimeout(Integer.parseInt(arguments[3]), TimeUnit.SECONDS)
                .build();
        Consumer<byte[]> consumer;
        try {
            consumer = client.newConsumer()
                    .topicsPattern(Pattern.compile(arguments[1]))
                    .patternAutoDiscoveryPeriod(Integer.parseInt(arguments[2]), TimeUnit.SECONDS)
                    .subscriptionName("s")
                    .property("team", "red")
                    .subscribe();
        } catch (PulsarClientException error) {
            System.out.println("refused " + error.getClass().getSimpleName());
            System.exit(0);
            return;
        }
        System.out.println("subscribed");
        System.in.readAllBytes();
        consumer.close();
        client.close();
        System.exit(0);
    }
}
