import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Tests of a program that uses Pulsar: messages, topics found by a pattern, a fault, and an hour. */
class OrdersTest {
    private static final String REFUSED_ONCE =
            """
            {"on": ["SUBSCRIBE"], "when": {"times": 1}, "do": {"action": "error", "error": "ServiceNotReady"}}
            """;

    @RegisterExtension
    Floodgate floodgate = new Floodgate();

    @Test
    void anOrderArrives() throws Exception {
        Consumer<String> consumer = billing().topic("orders").subscribe();
        send("orders", "two teas");
        assertEquals("two teas", receive(consumer));
    }

    @Test
    void ordersOfAllCountriesAreFound() throws Exception {
        for (String topic : List.of("orders-eu", "orders-us", "invoices-eu")) {
            send(topic, topic);
        }
        Consumer<String> consumer = billing()
                .topicsPattern("persistent://public/default/orders-.*")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .subscribe();
        Set<String> found = new HashSet<>(List.of(receive(consumer), receive(consumer)));
        assertEquals(Set.of("orders-eu", "orders-us"), found);
    }

    @Test
    void aRefusedSubscriptionIsTriedAgain() throws Exception {
        floodgate.ask("POST", "/admin/v2/floodgate/faults", REFUSED_ONCE);
        Consumer<String> consumer = billing().topic("orders").subscribe();
        send("orders", "one tea");
        assertEquals("one tea", receive(consumer));
        String faults = floodgate.ask("GET", "/admin/v2/floodgate/faults", "");
        assertTrue(faults.contains("\"fired\":1,"), faults);
    }

    @Test
    void anOrderComesAnHourLater() throws Exception {
        Consumer<String> consumer =
                billing().topic("orders").subscriptionType(SubscriptionType.Shared).subscribe();
        floodgate.client().newProducer(Schema.STRING).topic("orders").create()
                .newMessage().value("late tea").deliverAfter(1, TimeUnit.HOURS).send();
        floodgate.advance("1h");
        assertEquals("late tea", receive(consumer));
    }

    private ConsumerBuilder<String> billing() {
        return floodgate.client().newConsumer(Schema.STRING).subscriptionName("billing");
    }

    private void send(String topic, String order) throws Exception {
        floodgate.client().newProducer(Schema.STRING).topic(topic).create().send(order);
    }

    private static String receive(Consumer<String> consumer) throws Exception {
        Message<String> message = consumer.receive(5, TimeUnit.SECONDS);
        assertNotNull(message);
        consumer.acknowledge(message);
        return message.getValue();
    }
}
