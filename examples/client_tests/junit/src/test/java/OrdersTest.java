import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Schema;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

class OrdersTest {
    @RegisterExtension
    Floodgate floodgate = new Floodgate();

    @Test
    void ordersArrive() throws Exception {
        String topic = "persistent://" + floodgate.namespace() + "/orders";
        Consumer<String> consumer =
                floodgate.client().newConsumer(Schema.STRING).topic(topic).subscriptionName("billing").subscribe();
        floodgate.client().newProducer(Schema.STRING).topic(topic).create().send("one");
        Message<String> message = consumer.receive(5, TimeUnit.SECONDS);
        assertNotNull(message);
        assertEquals("one", message.getValue());
        consumer.acknowledge(message);
    }
}
