import java.time.Duration;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.reactive.client.adapter.AdaptedReactivePulsarClientFactory;
import org.apache.pulsar.reactive.client.api.MessageResult;
import org.apache.pulsar.reactive.client.api.MessageSpec;
import reactor.core.publisher.Mono;

public class Orders {
  public static void main(String[] urls) throws Exception {
    try (var client = PulsarClient.builder().serviceUrl(urls[0]).build()) {
      var pulsar = AdaptedReactivePulsarClientFactory.create(client);
      var sender = pulsar.messageSender(Schema.STRING).topic("reactive-orders").build();
      var consumer =
          pulsar
              .messageConsumer(Schema.STRING)
              .topic("reactive-orders")
              .subscriptionName("shop")
              .build();
      consumer.consumeNothing().block(); // Makes the subscription.
      sender.sendOne(MessageSpec.of("an order")).block();
      var order =
          consumer.consumeOne(
              message ->
                  Mono.just(
                      MessageResult.acknowledge(message.getMessageId(), message.getValue())));
      System.out.println(order.block(Duration.ofSeconds(20)));
    }
  }
}
