import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.ClientBuilder;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.impl.auth.AuthenticationTls;

/** Where a scenario runs: servers, a namespace, and its clients. */
class Place implements AutoCloseable {
    static final int PATIENCE_MILLIS = 15_000;
    static final int QUIET_MILLIS = 300;
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    final String serviceUrl;
    final String adminUrl;
    final String namespace;
    final Path folder;
    final String name;
    private final List<PulsarClient> clients = new ArrayList<>();

    Place(String serviceUrl, String adminUrl, String namespace, Path folder, String name) {
        this.serviceUrl = serviceUrl;
        this.adminUrl = adminUrl;
        this.namespace = namespace;
        this.folder = folder;
        this.name = name;
    }

    String topic(String part) {
        return "persistent://" + namespace + "/" + name + part;
    }

    String path(String part) {
        return topic(part).replace("://", "/");
    }

    PulsarClient client() throws Exception {
        PulsarClient client = builder(serviceUrl).operationTimeout(20, TimeUnit.SECONDS).build();
        clients.add(client);
        return client;
    }

    /** A client that speaks TLS as the system properties tls.* say, where there are any. */
    static ClientBuilder builder(String url) throws Exception {
        ClientBuilder builder = PulsarClient.builder().serviceUrl(url);
        String trust = System.getProperty("tls.trust");
        if (trust != null) {
            builder.tlsTrustCertsFilePath(trust).enableTlsHostnameVerification(true);
        }
        String certificate = System.getProperty("tls.certificate");
        if (certificate != null) {
            builder.authentication(new AuthenticationTls(certificate, System.getProperty("tls.key")));
        }
        String cipher = System.getProperty("tls.cipher");
        if (cipher != null) {
            builder.tlsCiphers(Set.of(cipher)).tlsProtocols(Set.of("TLSv1.2"));
        }
        return builder;
    }

    @Override
    public void close() throws Exception {
        for (PulsarClient client : clients) {
            client.close();
        }
    }

    record Answer(int status, String body) {}

    Answer rest(String method, String path, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(adminUrl + "/admin/v2/" + path))
                .method(method, HttpRequest.BodyPublishers.ofString(body))
                .header("Content-Type", "application/json")
                .build();
        HttpResponse<String> answer = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
        return new Answer(answer.statusCode(), answer.body());
    }

    ConsumerBuilder<byte[]> subscription(PulsarClient client) {
        return client.newConsumer().topic(topic("")).subscriptionName("s");
    }

    ConsumerBuilder<byte[]> subscription(PulsarClient client, SubscriptionType type) {
        return subscription(client).subscriptionType(type);
    }

    static ProducerBuilder<byte[]> alone(PulsarClient client, String topic) {
        return client.newProducer(Schema.BYTES).topic(topic).enableBatching(false);
    }

    static ProducerBuilder<byte[]> together(PulsarClient client, String topic) {
        return client.newProducer(Schema.BYTES).topic(topic).batchingMaxPublishDelay(5, TimeUnit.SECONDS);
    }

    static void fill(ProducerBuilder<byte[]> builder, List<byte[]> messages) throws Exception {
        try (Producer<byte[]> producer = builder.create()) {
            for (byte[] message : messages) {
                producer.sendAsync(message);
            }
            producer.flush();
        }
    }

    static List<byte[]> one(String text) {
        return List.of(text.getBytes(StandardCharsets.UTF_8));
    }

    static List<byte[]> payloads(String name, int count, int start) {
        List<byte[]> found = new ArrayList<>();
        for (int number = start; number < start + count; number++) {
            found.add((name + "-" + number).getBytes(StandardCharsets.UTF_8));
        }
        return found;
    }

    static String digest(Collection<byte[]> messages) throws Exception {
        MessageDigest hash = MessageDigest.getInstance("SHA-256");
        for (byte[] message : messages) {
            hash.update(message);
            hash.update((byte) '\n');
        }
        return HexFormat.of().formatHex(hash.digest());
    }

    static String sortedDigest(Collection<String> messages) throws Exception {
        return digest(messages.stream().distinct().sorted().map(String::getBytes).toList());
    }

    static List<byte[]> data(List<Message<byte[]>> messages) {
        return messages.stream().map(Message::getData).toList();
    }

    static List<String> texts(List<Message<byte[]>> messages) {
        return messages.stream().map(message -> new String(message.getData())).toList();
    }

    static <T> List<Message<T>> receive(Consumer<T> consumer, int count, boolean ack) throws Exception {
        List<Message<T>> found = new ArrayList<>();
        while (found.size() < count) {
            Message<T> message = consumer.receive(PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
            if (message == null) {
                throw new IllegalStateException("only " + found.size() + " of " + count + " came");
            }
            if (ack) {
                consumer.acknowledge(message);
            }
            found.add(message);
        }
        return found;
    }

    static boolean nothingComes(Consumer<?> consumer) throws Exception {
        return consumer.receive(QUIET_MILLIS, TimeUnit.MILLISECONDS) == null;
    }

    static List<List<Message<byte[]>>> drain(List<Consumer<byte[]>> consumers, int count) throws Exception {
        List<List<Message<byte[]>>> found = new ArrayList<>();
        consumers.forEach(consumer -> found.add(new ArrayList<>()));
        long giveUp = System.currentTimeMillis() + PATIENCE_MILLIS;
        for (int all = 0; all < count && System.currentTimeMillis() < giveUp; ) {
            for (int place = 0; place < consumers.size(); place++) {
                Message<byte[]> message = consumers.get(place).receive(5, TimeUnit.MILLISECONDS);
                if (message != null) {
                    consumers.get(place).acknowledge(message);
                    found.get(place).add(message);
                    all++;
                }
            }
        }
        return found;
    }

    interface Attempt {
        void make() throws Exception;
    }

    /** Return the name of the client's error, without its ending; empty if there was none. */
    static String refusal(Attempt attempt) {
        try {
            attempt.make();
            return "";
        } catch (Exception error) {
            return error.getClass().getSimpleName().replaceAll("Exception$", "");
        }
    }

    static Map<String, Object> result(Object... pairs) {
        Map<String, Object> found = new LinkedHashMap<>();
        for (int place = 0; place < pairs.length; place += 2) {
            found.put((String) pairs[place], pairs[place + 1]);
        }
        return found;
    }
}
