import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import org.apache.pulsar.client.api.PulsarClient;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A broker and its client for the tests of a program that uses Pulsar: shared, and empty at the start of each test.
 * {@code FLOODGATE_BROKER} names the program if {@code floodgate-broker} is not on the path.
 *
 * <pre>{@code @RegisterExtension Floodgate floodgate = new Floodgate();}</pre>
 */
public class Floodgate implements BeforeEachCallback, AfterEachCallback {
    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static Floodgate.Broker broker;

    private PulsarClient client;

    private record Broker(String serviceUrl, String webUrl) {}

    public String serviceUrl() {
        return broker.serviceUrl;
    }

    public PulsarClient client() {
        return client;
    }

    @Override
    public void beforeEach(ExtensionContext context) throws Exception {
        start();
        ask("POST", "/admin/v2/floodgate/reset", "");
        client = PulsarClient.builder().serviceUrl(broker.serviceUrl).build();
    }

    @Override
    public void afterEach(ExtensionContext context) throws Exception {
        client.close();
    }

    /** Moves the broker's time ahead: "90s", "5m", "1h". */
    public void advance(String time) throws Exception {
        ask("POST", "/admin/v2/floodgate/clock", "{\"advance\": \"" + time + "\"}");
    }

    /** Sends a request to the web port, and returns its answer. */
    public String ask(String method, String path, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(broker.webUrl + path))
                .method(method, HttpRequest.BodyPublishers.ofString(body))
                .header("Content-Type", "application/json")
                .build();
        HttpResponse<String> answer = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() >= 300) {
            throw new IOException(method + " " + path + ": " + answer.statusCode() + " " + answer.body());
        }
        return answer.body();
    }

    private static synchronized void start() throws IOException {
        if (broker != null) {
            return;
        }
        String program = System.getenv().getOrDefault("FLOODGATE_BROKER", "floodgate-broker");
        Process process = new ProcessBuilder(
                        program,
                        "--set", "brokerServicePort=0", "--set", "webServicePort=0", // free ports
                        "--set", "bindAddress=127.0.0.1", "--set", "advertisedAddress=127.0.0.1",
                        "--set", "floodgateFaultsEnabled=true") // faults, and the reset
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroy));
        // The broker's first line: READY broker pulsar://host:port http://host:port
        String line = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
        String[] words = line == null ? new String[0] : line.split(" ");
        if (words.length != 4 || !words[0].equals("READY")) {
            throw new IOException(program + " did not start; it says why above");
        }
        broker = new Broker(words[2], words[3]);
    }
}
