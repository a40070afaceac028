import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;

/** The scenario of a broker that is killed and started again beneath open clients. */
class Restart {
    private static final int COUNT = 200;

    static Map<String, Object> restart(Place place) throws Exception {
        PulsarClient client = place.client();
        Consumer<byte[]> consumer =
                place.subscription(client, SubscriptionType.Shared).subscribe();
        Consumer<byte[]> quick =
                client.newConsumer().topic(place.topic("")).subscriptionName("quick").subscribe();
        Producer<byte[]> producer =
                Place.alone(client, place.topic("")).sendTimeout(60, TimeUnit.SECONDS).create();
        Producer<byte[]> batching = client.newProducer().topic(place.topic("")).create();
        List<byte[]> sent = Place.payloads("restart", COUNT, 0);
        for (int number = 0; number < COUNT; number++) {
            (number % 10 == 0 ? producer : batching).sendAsync(sent.get(number));
        }
        batching.flush();
        producer.flush();
        Place.receive(consumer, COUNT / 2, true);
        System.out.println("{\"scenario\": \"restart\", \"at\": \"kill\"}");
        System.in.read();
        List<byte[]> more = Place.payloads("restart", COUNT, COUNT);
        for (byte[] payload : more) {
            producer.send(payload);
        }
        List<String> stored = new ArrayList<>();
        for (Message<byte[]> message :
                Reading.readAll(Reading.from(client, place, MessageId.earliest).create())) {
            stored.add(new String(message.getData()));
        }
        Set<String> got = received(quick, 2 * COUNT);
        Set<String> rest = received(consumer, COUNT + COUNT / 2);
        boolean left = rest.size() >= COUNT + COUNT / 2
                && more.stream().allMatch(payload -> rest.contains(new String(payload)));
        Consumer<byte[]> late = client.newConsumer()
                .topic(place.topic(""))
                .subscriptionName("late")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .subscribe();
        return Place.result(
                "quick", Place.sortedDigest(got),
                "left", left,
                "stored", Place.sortedDigest(stored),
                "late", !Place.nothingComes(late));
    }

    /** Return all that comes: patiently until so many are there, as clients reconnect slowly. */
    private static Set<String> received(Consumer<byte[]> consumer, int wanted) throws Exception {
        Set<String> found = new TreeSet<>();
        while (true) {
            int patience = found.size() < wanted ? Place.PATIENCE_MILLIS : Place.QUIET_MILLIS;
            Message<byte[]> message = consumer.receive(patience, TimeUnit.MILLISECONDS);
            if (message == null) {
                return found;
            }
            consumer.acknowledge(message);
            found.add(new String(message.getData()));
        }
    }
}
