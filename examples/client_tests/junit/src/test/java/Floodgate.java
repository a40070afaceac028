import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.UUID;
import org.apache.pulsar.client.api.PulsarClient;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A broker for the tests of a Pulsar client: one for all of them, a namespace and a client for each.
 * {@code FLOODGATE_BROKER} names the program if {@code floodgate-broker} is not on the path.
 *
 * <pre>{@code @RegisterExtension Floodgate floodgate = new Floodgate();}</pre>
 */
public class Floodgate implements BeforeEachCallback, AfterEachCallback {
    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static Floodgate.Broker broker;

    private String namespace;
    private PulsarClient client;

    private record Broker(String serviceUrl, String adminUrl) {}

    public String namespace() {
        return namespace;
    }

    public PulsarClient client() {
        return client;
    }

    @Override
    public void beforeEach(ExtensionContext context) throws Exception {
        start();
        namespace = "public/test-" + UUID.randomUUID();
        admin("PUT", "namespaces/" + namespace);
        client = PulsarClient.builder().serviceUrl(broker.serviceUrl).build();
    }

    @Override
    public void afterEach(ExtensionContext context) throws Exception {
        client.close();
        admin("DELETE", "namespaces/" + namespace + "?force=true");
    }

    public void admin(String method, String path) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(broker.adminUrl + "/admin/v2/" + path))
                .method(method, HttpRequest.BodyPublishers.ofString("{}"))
                .header("Content-Type", "application/json")
                .build();
        HttpResponse<String> answer = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() >= 300) {
            throw new IOException(method + " " + path + ": " + answer.statusCode() + " " + answer.body());
        }
    }

    private static synchronized void start() throws IOException {
        if (broker != null) {
            return;
        }
        String program = System.getenv().getOrDefault("FLOODGATE_BROKER", "floodgate-broker");
        Process process = new ProcessBuilder(
                        program,
                        "--set", "brokerServicePort=0", "--set", "webServicePort=0", // any free ones
                        "--set", "bindAddress=127.0.0.1", "--set", "advertisedAddress=127.0.0.1",
                        "--set", "forceDeleteNamespaceAllowed=true")
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroy));
        // The broker's first line: READY broker pulsar://host:port http://host:port
        String line = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
        String[] words = line == null ? new String[0] : line.split(" ");
        if (words.length != 4 || !words[0].equals("READY")) {
            throw new IOException("the broker said: " + line);
        }
        broker = new Broker(words[2], words[3]);
    }
}
