import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.client.api.schema.RecordSchemaBuilder;
import org.apache.pulsar.client.api.schema.SchemaBuilder;
import org.apache.pulsar.common.schema.SchemaType;

/** Scenarios about schemas. */
class Typed {
    private static final Pattern VERSION = Pattern.compile("\"version\":(\\d+)");
    private static final Pattern TYPE = Pattern.compile("\"type\":\"(\\w+)\"");

    static String schemaPath(Place place) {
        return "schemas/" + place.topic("").substring("persistent://".length()) + "/schema";
    }

    static Schema<GenericRecord> person(SchemaType type) {
        RecordSchemaBuilder builder = SchemaBuilder.record("Person");
        builder.field("name").type(SchemaType.STRING).required();
        builder.field("age").type(SchemaType.INT32).required();
        return Schema.generic(builder.build(type));
    }

    /** The same name for something else: readable neither way. */
    static Schema<GenericRecord> stranger(SchemaType type) {
        RecordSchemaBuilder builder = SchemaBuilder.record("Person");
        builder.field("name").type(SchemaType.INT32).required();
        builder.field("town").type(SchemaType.STRING).required();
        return Schema.generic(builder.build(type));
    }

    interface Reading<T> {
        String of(T value);
    }

    static <T> Map<String, Object> exchange(
            Place place, Schema<T> schema, List<T> values, Reading<T> reading, String registered) throws Exception {
        PulsarClient client = place.client();
        Producer<T> producer = client.newProducer(schema).topic(place.topic("")).enableBatching(false).create();
        Consumer<T> consumer = client.newConsumer(schema)
                .topic(place.topic(""))
                .subscriptionName("s")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .subscribe();
        List<String> sent = new ArrayList<>();
        for (T value : values) {
            producer.send(value);
            sent.add(reading.of(value));
        }
        List<String> got = new ArrayList<>();
        for (Message<T> message : Place.receive(consumer, values.size(), true)) {
            got.add(reading.of(message.getValue()));
        }
        Place.Answer answer = place.rest("GET", schemaPath(place), "");
        return Place.result(
                "same", got.equals(sent),
                "status", answer.status(),
                "registered", registered.equals(found(TYPE, answer.body())),
                "version", Integer.parseInt(found(VERSION, answer.body())));
    }

    static String found(Pattern pattern, String text) {
        Matcher matcher = pattern.matcher(text);
        return matcher.find() ? matcher.group(1) : "-1";
    }

    static Map<String, Object> schemaString(Place place) throws Exception {
        List<String> texts = List.of("text 0", "text 1", "text 2", "text 3", "text 4");
        return exchange(place, Schema.STRING, texts, text -> text, "STRING");
    }

    static Map<String, Object> records(Place place, SchemaType type) throws Exception {
        Schema<GenericRecord> schema = person(type);
        List<GenericRecord> people = new ArrayList<>();
        for (int number = 0; number < 5; number++) {
            people.add(((org.apache.pulsar.client.api.schema.GenericSchema<GenericRecord>) schema)
                    .newRecordBuilder()
                    .set("name", "name " + number)
                    .set("age", number)
                    .build());
        }
        Map<String, Object> result = exchange(
                place, schema, people, record -> record.getField("name") + " " + record.getField("age"), type.name());
        PulsarClient other = place.client();
        result.put(
                "refused",
                Place.refusal(
                        () -> other.newProducer(stranger(type)).topic(place.topic("")).create()));
        return result;
    }

    static Map<String, Object> schemaJson(Place place) throws Exception {
        return records(place, SchemaType.JSON);
    }

    static Map<String, Object> schemaAvro(Place place) throws Exception {
        return records(place, SchemaType.AVRO);
    }

    static Map<String, Object> schemaDeleted(Place place) throws Exception {
        PulsarClient client = place.client();
        client.newProducer(person(SchemaType.JSON)).topic(place.topic("")).create().close();
        int status = place.rest("DELETE", schemaPath(place) + "?force=true", "").status();
        String refused = Place.refusal(() ->
                client.newProducer(stranger(SchemaType.JSON)).topic(place.topic("")).create());
        return Place.result("status", status, "refused", refused);
    }

    static Map<String, Object> missingTopic(Place place) throws Exception {
        PulsarClient client = place.client();
        String refused = Place.refusal(() -> client.newProducer()
                .topic("persistent://public/nowhere-at-all/topic")
                .create());
        return Place.result("refused", !refused.isEmpty());
    }
}
