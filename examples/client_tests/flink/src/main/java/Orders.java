import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.connector.pulsar.sink.PulsarSink;
import org.apache.flink.connector.pulsar.source.PulsarSource;
import org.apache.flink.connector.pulsar.source.enumerator.cursor.StartCursor;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

public class Orders {
  public static void main(String[] urls) throws Exception {
    var flink = StreamExecutionEnvironment.getExecutionEnvironment();
    flink.enableCheckpointing(500);
    PulsarSink<String> sink =
        PulsarSink.builder()
            .setServiceUrl(urls[0])
            .setTopics("flink-orders")
            .setSerializationSchema(new SimpleStringSchema())
            .build();
    flink.fromElements("an order").sinkTo(sink);
    flink.execute();
    PulsarSource<String> source =
        PulsarSource.builder()
            .setServiceUrl(urls[0])
            .setTopics("flink-orders")
            .setSubscriptionName("shop")
            .setDeserializationSchema(new SimpleStringSchema())
            .setStartCursor(StartCursor.earliest())
            .build();
    var orders = flink.fromSource(source, WatermarkStrategy.noWatermarks(), "flink-orders");
    orders.executeAndCollect(1).forEach(System.out::println);
  }
}
