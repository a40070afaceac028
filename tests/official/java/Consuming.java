import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;

/** Scenarios about subscriptions. */
class Consuming {
    private static final SubscriptionInitialPosition EARLIEST = SubscriptionInitialPosition.Earliest;

    static Map<String, Object> exclusive(Place place) throws Exception {
        PulsarClient client = place.client();
        PulsarClient other = place.client();
        Consumer<byte[]> consumer = place.subscription(client).subscribe();
        String refused = Place.refusal(() -> place.subscription(other).subscribe());
        Place.fill(Place.alone(client, place.topic("")), Place.payloads("exclusive", 20, 0));
        List<Message<byte[]>> first = Place.receive(consumer, 20, false);
        consumer.acknowledgeCumulative(first.get(9));
        consumer.close();
        Consumer<byte[]> again = place.subscription(other).subscribe();
        return Place.result(
                "refused", refused,
                "digest", Place.digest(Place.data(first)),
                "again", Place.digest(Place.data(Place.receive(again, 10, true))),
                "empty", Place.nothingComes(again));
    }

    static Map<String, Object> failover(Place place) throws Exception {
        PulsarClient client = place.client();
        PulsarClient other = place.client();
        List<Consumer<byte[]>> consumers = List.of(
                place.subscription(client, SubscriptionType.Failover).consumerName("a").subscribe(),
                place.subscription(other, SubscriptionType.Failover).consumerName("b").subscribe());
        Thread.sleep(1_500); // the active one is chosen a second after the last change
        Place.fill(Place.alone(client, place.topic("")), Place.payloads("failover", 20, 0));
        List<List<Message<byte[]>>> found = Place.drain(consumers, 20);
        int active = found.get(0).isEmpty() ? 1 : 0;
        consumers.get(active).close();
        Place.fill(Place.alone(other, place.topic("")), Place.payloads("failover", 20, 20));
        List<byte[]> later = Place.data(Place.receive(consumers.get(1 - active), 20, true));
        return Place.result(
                "together", found.stream().map(List::size).sorted().toList(),
                "first", Place.digest(Place.data(found.get(active))),
                "later", Place.digest(later));
    }

    static Map<String, Object> shared(Place place) throws Exception {
        PulsarClient client = place.client();
        PulsarClient other = place.client();
        Consumer<byte[]> first =
                place.subscription(client, SubscriptionType.Shared).receiverQueueSize(10).subscribe();
        Consumer<byte[]> second =
                place.subscription(other, SubscriptionType.Shared).receiverQueueSize(10).subscribe();
        Place.fill(Place.alone(client, place.topic("")), Place.payloads("shared", 100, 0));
        List<Message<byte[]>> held = Place.receive(first, 5, false);
        first.close();
        List<String> got = Place.texts(Place.receive(second, 100, true));
        return Place.result(
                "held", held.size(), "digest", Place.sortedDigest(got), "empty", Place.nothingComes(second));
    }

    static Map<String, Object> keyShared(Place place) throws Exception {
        int keys = 40;
        int count = 200;
        List<Consumer<byte[]>> consumers = List.of(
                place.subscription(place.client(), SubscriptionType.Key_Shared).subscribe(),
                place.subscription(place.client(), SubscriptionType.Key_Shared).subscribe());
        Producer<byte[]> producer = Place.alone(place.client(), place.topic("")).create();
        List<byte[]> payloads = Place.payloads("key_shared", count, 0);
        for (int number = 0; number < count; number++) {
            producer.newMessage().key("key-" + number % keys).value(payloads.get(number)).sendAsync();
        }
        producer.flush();
        List<List<Message<byte[]>>> found = Place.drain(consumers, count);
        Map<String, Integer> last = new HashMap<>();
        Map<String, Integer> owner = new HashMap<>();
        List<Integer> numbers = new ArrayList<>();
        boolean ordered = true;
        boolean apart = true;
        for (int which = 0; which < 2; which++) {
            for (Message<byte[]> message : found.get(which)) {
                int number = Integer.parseInt(new String(message.getData()).substring("key_shared-".length()));
                numbers.add(number);
                Integer before = last.put(message.getKey(), number);
                Integer whose = owner.put(message.getKey(), which);
                ordered = ordered && (before == null || before < number);
                apart = apart && (whose == null || whose == which);
            }
        }
        List<byte[]> all = numbers.stream().sorted().map(number -> ("key_shared-" + number).getBytes()).toList();
        boolean both = found.stream().noneMatch(List::isEmpty);
        return Place.result("digest", Place.digest(all), "ordered", ordered, "both", both, "apart", apart);
    }

    /** The pattern is asked again every minute only: what comes sooner was told by the watch. */
    static Map<String, Object> regex(Place place) throws Exception {
        PulsarClient client = place.client();
        Place.fill(Place.alone(client, place.topic("-a")), Place.one("before"));
        Consumer<byte[]> consumer = client.newConsumer()
                .topicsPattern(Pattern.compile(place.topic("-.*")))
                .subscriptionName("s")
                .subscriptionInitialPosition(EARLIEST)
                .patternAutoDiscoveryPeriod(60, TimeUnit.SECONDS)
                .subscribe();
        List<Message<byte[]>> got = new ArrayList<>(Place.receive(consumer, 1, true));
        Place.fill(Place.alone(client, place.topic("-b")), Place.one("comes"));
        got.addAll(Place.receive(consumer, 1, true));
        Place.fill(Place.alone(client, place.topic("-a")), Place.one("stays"));
        got.addAll(Place.receive(consumer, 1, true));
        int deleted = place.rest("DELETE", place.path("-b") + "?force=true", "").status();
        Place.fill(Place.alone(client, place.topic("-c")), Place.one("comes too"));
        got.addAll(Place.receive(consumer, 1, true));
        return Place.result("got", Place.texts(got), "deleted", deleted);
    }

    static Map<String, Object> manyTopics(Place place) throws Exception {
        PulsarClient client = place.client();
        List<String> topics = Stream.of("-a", "-b", "-c").map(place::topic).toList();
        Consumer<byte[]> consumer = client.newConsumer().topics(topics).subscriptionName("s").subscribe();
        for (String topic : topics) {
            Place.fill(Place.alone(client, topic), Place.one(topic.substring(topic.lastIndexOf('/') + 1)));
        }
        return Place.result("got", Place.texts(Place.receive(consumer, 3, true)).stream().sorted().toList());
    }

    static Map<String, Object> nack(Place place) throws Exception {
        PulsarClient client = place.client();
        Consumer<byte[]> consumer = place.subscription(client, SubscriptionType.Shared)
                .negativeAckRedeliveryDelay(200, TimeUnit.MILLISECONDS)
                .subscribe();
        Place.fill(Place.alone(client, place.topic("")), Place.payloads("nack", 5, 0));
        for (Message<byte[]> message : Place.receive(consumer, 5, false)) {
            if (new String(message.getData()).equals("nack-2")) {
                consumer.negativeAcknowledge(message);
            } else {
                consumer.acknowledge(message);
            }
        }
        Message<byte[]> again = Place.receive(consumer, 1, true).get(0);
        return Place.result(
                "again", new String(again.getData()),
                "redelivered", again.getRedeliveryCount(),
                "empty", Place.nothingComes(consumer));
    }

    static Map<String, Object> deadLetter(Place place) throws Exception {
        PulsarClient client = place.client();
        Consumer<byte[]> consumer = place.subscription(client, SubscriptionType.Shared)
                .negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS)
                .deadLetterPolicy(DeadLetterPolicy.builder()
                        .maxRedeliverCount(2)
                        .deadLetterTopic(place.topic("-dead"))
                        .initialSubscriptionName("kept")
                        .build())
                .subscribe();
        Consumer<byte[]> dead = client.newConsumer()
                .topic(place.topic("-dead"))
                .subscriptionName("kept")
                .subscriptionInitialPosition(EARLIEST)
                .subscribe();
        Place.fill(Place.alone(client, place.topic("")), Place.payloads("dead_letter", 1, 0));
        List<Integer> counts = new ArrayList<>();
        for (int round = 0; round < 3; round++) {
            Message<byte[]> message = Place.receive(consumer, 1, false).get(0);
            counts.add(message.getRedeliveryCount());
            consumer.negativeAcknowledge(message);
        }
        List<byte[]> letter = Place.data(Place.receive(dead, 1, true));
        return Place.result(
                "counts", counts, "dead", Place.digest(letter), "empty", Place.nothingComes(consumer));
    }

    static Map<String, Object> batchIndex(Place place) throws Exception {
        PulsarClient client = place.client();
        Consumer<byte[]> consumer = place.subscription(client, SubscriptionType.Shared)
                .enableBatchIndexAcknowledgment(true)
                .subscribe();
        Place.fill(Place.together(client, place.topic("")), Place.payloads("batch_index", 10, 0));
        List<Message<byte[]>> got = Place.receive(consumer, 10, false);
        Set<Long> entries = new HashSet<>();
        got.forEach(message -> entries.add(((MessageIdAdv) message.getMessageId()).getEntryId()));
        for (Message<byte[]> message : got.subList(0, 4)) {
            consumer.acknowledge(message);
        }
        consumer.close();
        Consumer<byte[]> again = place.subscription(place.client(), SubscriptionType.Shared)
                .enableBatchIndexAcknowledgment(true)
                .subscribe();
        return Place.result(
                "entries", entries.size(),
                "again", Place.digest(Place.data(Place.receive(again, 6, true))),
                "empty", Place.nothingComes(again));
    }

    static Map<String, Object> delayed(Place place) throws Exception {
        PulsarClient client = place.client();
        Consumer<byte[]> consumer =
                place.subscription(client, SubscriptionType.Shared).subscribe();
        Producer<byte[]> producer = Place.alone(client, place.topic("")).create();
        long started = System.currentTimeMillis();
        producer.newMessage().value("later".getBytes()).deliverAfter(2_500, TimeUnit.MILLISECONDS).send();
        producer.send("now".getBytes());
        List<String> got = Place.texts(Place.receive(consumer, 2, true));
        long waited = System.currentTimeMillis() - started;
        return Place.result("got", got, "in_time", 1_400 < waited);
    }

    static Map<String, Object> unsubscribe(Place place) throws Exception {
        PulsarClient client = place.client();
        Consumer<byte[]> consumer = place.subscription(client).subscribe();
        Place.fill(Place.alone(client, place.topic("")), Place.payloads("unsubscribe", 3, 0));
        Place.receive(consumer, 1, true);
        consumer.unsubscribe();
        Consumer<byte[]> again =
                place.subscription(client).subscriptionInitialPosition(EARLIEST).subscribe();
        List<byte[]> got = Place.data(Place.receive(again, 3, true));
        Place.Answer answer = place.rest("GET", place.path("") + "/subscriptions", "");
        List<String> names = answer.body().equals("[\"s\"]") ? List.of("s") : List.of(answer.body());
        return Place.result("digest", Place.digest(got), "status", answer.status(), "names", names);
    }
}
