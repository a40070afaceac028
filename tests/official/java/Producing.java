import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerAccessMode;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionType;

/** Scenarios about what producers send. */
class Producing {
    static Map<String, Object> plain(Place place) throws Exception {
        PulsarClient client = place.client();
        Consumer<byte[]> consumer = place.subscription(client).subscribe();
        Producer<byte[]> producer = Place.alone(client, place.topic("")).create();
        List<byte[]> payloads = Place.payloads("plain", 50, 0);
        for (int number = 0; number < 50; number++) {
            producer.newMessage()
                    .value(payloads.get(number))
                    .property("number", "" + number)
                    .key("key-" + number)
                    .eventTime(1000 + number)
                    .send();
        }
        List<Message<byte[]>> got = Place.receive(consumer, 50, true);
        boolean carried = true;
        for (int number = 0; number < 50; number++) {
            Message<byte[]> message = got.get(number);
            carried = carried
                    && message.getProperties().equals(Map.of("number", "" + number))
                    && message.getKey().equals("key-" + number)
                    && message.getEventTime() == 1000 + number;
        }
        return Place.result(
                "digest", Place.digest(Place.data(got)), "carried", carried, "empty", Place.nothingComes(consumer));
    }

    static Map<String, Object> orderingKey(Place place) throws Exception {
        PulsarClient client = place.client();
        Consumer<byte[]> consumer = place.subscription(client).subscribe();
        Producer<byte[]> producer = Place.alone(client, place.topic("")).create();
        producer.newMessage().value("ordered".getBytes()).orderingKey("first".getBytes()).send();
        return Place.result("key", new String(Place.receive(consumer, 1, true).get(0).getOrderingKey()));
    }

    static Map<String, Object> batched(Place place) throws Exception {
        PulsarClient client = place.client();
        Consumer<byte[]> consumer = place.subscription(client).subscribe();
        Producer<byte[]> producer =
                client.newProducer().topic(place.topic("")).batchingMaxMessages(100).blockIfQueueFull(true).create();
        List<CompletableFuture<MessageId>> sent = new ArrayList<>();
        for (byte[] payload : Place.payloads("batched", 1000, 0)) {
            sent.add(producer.sendAsync(payload));
        }
        producer.flush();
        int refused = 0;
        int receipts = 0;
        for (CompletableFuture<MessageId> one : sent) {
            refused += one.handle((id, error) -> error == null ? 0 : 1).get(15, TimeUnit.SECONDS);
            receipts++;
        }
        List<byte[]> got = Place.data(Place.receive(consumer, 1000, true));
        return Place.result("digest", Place.digest(got), "receipts", receipts, "refused", refused);
    }

    static Map<String, Object> compressed(Place place) throws Exception {
        PulsarClient client = place.client();
        List<byte[]> messages = new ArrayList<>();
        for (byte[] payload : Place.payloads("compressed", 20, 0)) {
            messages.add(new String(payload).repeat(100).getBytes());
        }
        Map<String, Object> found = Place.result();
        for (CompressionType codec : CompressionType.values()) {
            if (codec == CompressionType.NONE) {
                continue;
            }
            String name = codec.name().toLowerCase();
            String topic = place.topic("-" + name);
            Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").subscribe();
            for (boolean batching : new boolean[] {false, true}) {
                Place.fill(
                        client.newProducer(Schema.BYTES).topic(topic).compressionType(codec).enableBatching(batching),
                        messages);
            }
            found.put(name, Place.digest(Place.data(Place.receive(consumer, 40, true))));
        }
        return found;
    }

    static Map<String, Object> chunked(Place place) throws Exception {
        PulsarClient client = place.client();
        Consumer<byte[]> consumer = place.subscription(client).subscribe();
        Producer<byte[]> producer =
                Place.alone(client, place.topic("")).enableChunking(true).create();
        StringBuilder line = new StringBuilder();
        for (byte[] payload : Place.payloads("chunked", 100, 0)) {
            line.append(new String(payload, StandardCharsets.US_ASCII));
        }
        int size = 12 << 20;
        byte[] whole = line.toString().repeat(size / line.length() + 1).getBytes();
        producer.send(Arrays.copyOf(whole, size));
        List<byte[]> got = Place.data(Place.receive(consumer, 1, true));
        return Place.result("bytes", got.get(0).length, "digest", Place.digest(got));
    }

    static Map<String, Object> accessModes(Place place) throws Exception {
        PulsarClient client = place.client();
        PulsarClient other = place.client();
        Producer<byte[]> first = Place.alone(client, place.topic(""))
                .accessMode(ProducerAccessMode.Exclusive)
                .create();
        String exclusive = Place.refusal(() -> Place.alone(other, place.topic(""))
                .accessMode(ProducerAccessMode.Exclusive)
                .create());
        String shared = Place.refusal(() -> Place.alone(other, place.topic("")).create());
        first.close();
        Place.alone(other, place.topic("")).accessMode(ProducerAccessMode.Exclusive).create().send("x".getBytes());
        return Place.result("exclusive", !exclusive.isEmpty(), "shared", !shared.isEmpty());
    }

    static Map<String, Object> producerNames(Place place) throws Exception {
        PulsarClient client = place.client();
        PulsarClient other = place.client();
        Producer<byte[]> first = Place.alone(client, place.topic("")).producerName("one").create();
        String refused = Place.refusal(() -> Place.alone(other, place.topic("")).producerName("one").create());
        first.close();
        Producer<byte[]> again = Place.alone(other, place.topic("")).producerName("one").create();
        return Place.result("refused", !refused.isEmpty(), "again", again.getProducerName());
    }

    static Map<String, Object> encrypted(Place place) throws Exception {
        PulsarClient client = place.client();
        String publicKey = "file://" + place.folder.resolve("public.pem");
        String privateKey = "file://" + place.folder.resolve("private.pem");
        Consumer<byte[]> consumer =
                place.subscription(client).defaultCryptoKeyReader(privateKey).subscribe();
        Place.fill(
                client.newProducer(Schema.BYTES)
                        .topic(place.topic(""))
                        .addEncryptionKey("floodgate.key")
                        .defaultCryptoKeyReader(publicKey),
                Place.payloads("encrypted", 20, 0));
        return Place.result("digest", Place.digest(Place.data(Place.receive(consumer, 20, true))));
    }

    static Map<String, Object> partitioned(Place place) throws Exception {
        int status = place.rest("PUT", place.path("") + "/partitions", "3").status();
        PulsarClient client = place.client();
        Consumer<byte[]> consumer = place.subscription(client).subscribe();
        Producer<byte[]> producer = Place.alone(client, place.topic("")).create();
        for (byte[] payload : Place.payloads("partitioned", 30, 0)) {
            producer.send(payload);
        }
        List<Message<byte[]>> got = Place.receive(consumer, 30, true);
        Set<String> used = new HashSet<>();
        got.forEach(message -> used.add(message.getTopicName()));
        List<String> names = client.getPartitionsForTopic(place.topic("")).get();
        return Place.result(
                "created", status,
                "digest", Place.sortedDigest(Place.texts(got)),
                "partitions", names.stream().map(name -> name.substring(name.lastIndexOf('-') + 1)).toList(),
                "used", used.size());
    }

    static Map<String, Object> nonPersistent(Place place) throws Exception {
        PulsarClient client = place.client();
        String topic = "non-" + place.topic("");
        Consumer<byte[]> consumer = client.newConsumer()
                .topic(topic)
                .subscriptionName("s")
                .subscriptionType(SubscriptionType.Shared)
                .subscribe();
        Place.fill(Place.alone(client, topic), Place.payloads("non_persistent", 20, 0));
        return Place.result("digest", Place.sortedDigest(Place.texts(Place.receive(consumer, 20, true))));
    }

    static Map<String, Object> transactions(Place place) throws Exception {
        String refused = Place.refusal(() -> {
            try (PulsarClient client = Place.builder(place.serviceUrl)
                    .operationTimeout(5, TimeUnit.SECONDS)
                    .enableTransaction(true)
                    .build()) {
                client.newTransaction().build().get(15, TimeUnit.SECONDS);
            }
        });
        return Place.result("refused", !refused.isEmpty());
    }
}
