package orders;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.pulsar.annotation.PulsarListener;
import org.springframework.pulsar.core.PulsarTemplate;

@SpringBootApplication
public class Orders {
  final BlockingQueue<String> received = new LinkedBlockingQueue<>();

  @PulsarListener(topics = "spring-orders", subscriptionName = "shop")
  void receive(String order) {
    received.add(order);
  }

  @SuppressWarnings("unchecked")
  public static void main(String[] arguments) throws Exception {
    try (var context = SpringApplication.run(Orders.class, arguments)) {
      context.getBean(PulsarTemplate.class).send("spring-orders", "an order");
      System.out.println(context.getBean(Orders.class).received.poll(20, TimeUnit.SECONDS));
    }
  }
}
