import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;

/** Scenarios in which the admin REST API changes what clients see, and lookups by HTTP. */
class Administering {
    private static final Pattern STATUS = Pattern.compile("\"status\":\\s*\"(\\w+)\"");

    /** A client whose service URL is that of the web port. */
    static Map<String, Object> httpLookup(Place place) throws Exception {
        try (PulsarClient client = Place.builder(System.getProperty("tls.web", place.adminUrl))
                .operationTimeout(20, TimeUnit.SECONDS)
                .build()) {
            Place.fill(Place.alone(client, place.topic("-a")), Place.payloads("http_lookup", 10, 0));
            Consumer<byte[]> consumer = client.newConsumer()
                    .topicsPattern(Pattern.compile(place.topic("-.*")))
                    .subscriptionName("s")
                    .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                    .subscribe();
            return Place.result(
                    "digest", Place.digest(Place.data(Place.receive(consumer, 10, true))),
                    "partitions", client.getPartitionsForTopic(place.topic("-a")).get().size());
        }
    }

    /** What was sent already is not stored again. */
    static Map<String, Object> deduplicated(Place place) throws Exception {
        String namespace = place.namespace + "-dedup";
        place.rest("PUT", "namespaces/" + namespace, "{}");
        int status = place.rest("POST", "namespaces/" + namespace + "/deduplication", "true").status();
        String topic = "persistent://" + namespace + "/deduplicated";
        PulsarClient client = place.client();
        Producer<byte[]> producer = Place.alone(client, topic).producerName("one").create();
        long before = producer.getLastSequenceId();
        Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").subscribe();
        for (int number : new int[] {0, 1, 2, 1, 2}) {
            send(producer, number);
        }
        producer.close();
        Producer<byte[]> again = Place.alone(client, topic).producerName("one").create();
        long known = again.getLastSequenceId();
        send(again, 2);
        return Place.result(
                "status", status,
                "before", before,
                "known", known,
                "digest", Place.digest(Place.data(Place.receive(consumer, 3, true))),
                "empty", Place.nothingComes(consumer));
    }

    private static void send(Producer<byte[]> producer, int number) throws Exception {
        producer.newMessage().value(("deduplicated-" + number).getBytes()).sequenceId(number).send();
    }

    /** After compaction the newest value of each key is left for those who ask for it. */
    static Map<String, Object> compacted(Place place) throws Exception {
        PulsarClient client = place.client();
        place.subscription(client).readCompacted(true).subscribe().close();
        Producer<byte[]> producer = Place.alone(client, place.topic("")).create();
        List<byte[]> payloads = Place.payloads("compacted", 20, 0);
        for (int number = 0; number < 20; number++) {
            producer.newMessage().key("key-" + number % 5).value(payloads.get(number)).send();
        }
        String path = place.path("") + "/compaction";
        int started = place.rest("PUT", path, "").status();
        String status = "RUNNING";
        long giveUp = System.currentTimeMillis() + Place.PATIENCE_MILLIS;
        while (status.equals("RUNNING") && System.currentTimeMillis() < giveUp) {
            Thread.sleep(100);
            Matcher found = STATUS.matcher(place.rest("GET", path, "").body());
            status = found.find() ? found.group(1) : "none";
        }
        Thread.sleep(500);
        Consumer<byte[]> consumer =
                place.subscription(client).readCompacted(true).subscribe();
        List<Message<byte[]>> read = Reading.readAll(
                Reading.from(client, place, MessageId.earliest).readCompacted(true).create());
        List<Message<byte[]>> whole =
                Reading.readAll(Reading.from(client, place, MessageId.earliest).create());
        return Place.result(
                "started", started,
                "status", status,
                "consumed", Place.digest(Place.data(Place.receive(consumer, 5, true))),
                "read", Place.digest(Place.data(read)),
                "whole", Place.digest(Place.data(whole)));
    }
}
