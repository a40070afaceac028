import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.ReaderBuilder;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.TableView;

/** Scenarios about places in a topic: readers, seeks, table views. */
class Reading {
    static List<Message<byte[]>> readAll(Reader<byte[]> reader) throws Exception {
        List<Message<byte[]>> found = new ArrayList<>();
        while (reader.hasMessageAvailable()) {
            found.add(reader.readNext(Place.PATIENCE_MILLIS, TimeUnit.MILLISECONDS));
        }
        return found;
    }

    static String next(Reader<byte[]> reader) throws Exception {
        return new String(reader.readNext(Place.PATIENCE_MILLIS, TimeUnit.MILLISECONDS).getData());
    }

    static ReaderBuilder<byte[]> from(PulsarClient client, Place place, MessageId start) {
        return client.newReader().topic(place.topic("")).startMessageId(start);
    }

    static Map<String, Object> reader(Place place) throws Exception {
        PulsarClient client = place.client();
        Place.fill(Place.alone(client, place.topic("")), Place.payloads("reader", 20, 0));
        List<Message<byte[]>> whole = readAll(from(client, place, MessageId.earliest).create());
        Reader<byte[]> behind = from(client, place, whole.get(9).getMessageId()).create();
        Reader<byte[]> latest = from(client, place, MessageId.latest).create();
        boolean idle = latest.hasMessageAvailable();
        Place.fill(Place.alone(client, place.topic("")), Place.one("news"));
        return Place.result(
                "digest", Place.digest(Place.data(whole)), "behind", next(behind), "idle", idle, "news", next(latest));
    }

    static Map<String, Object> readerAt(Place place) throws Exception {
        PulsarClient client = place.client();
        Place.fill(Place.alone(client, place.topic("")), Place.payloads("reader_at", 3, 0));
        List<Message<byte[]>> whole = readAll(from(client, place, MessageId.earliest).create());
        return Place.result(
                "at",
                next(from(client, place, whole.get(1).getMessageId())
                        .startMessageIdInclusive()
                        .create()));
    }

    static Map<String, Object> batchedReader(Place place) throws Exception {
        PulsarClient client = place.client();
        Place.fill(Place.together(client, place.topic("")), Place.payloads("batched_reader", 10, 0));
        List<Message<byte[]>> whole = readAll(from(client, place, MessageId.earliest).create());
        List<Message<byte[]>> rest =
                readAll(from(client, place, whole.get(3).getMessageId()).create());
        return Place.result("digest", Place.digest(Place.data(whole)), "rest", Place.digest(Place.data(rest)));
    }

    static Map<String, Object> seekId(Place place) throws Exception {
        PulsarClient client = place.client();
        Consumer<byte[]> consumer =
                place.subscription(client).startMessageIdInclusive().subscribe();
        Place.fill(Place.alone(client, place.topic("")), Place.payloads("seek_id", 20, 0));
        List<Message<byte[]>> got = Place.receive(consumer, 20, true);
        consumer.seek(got.get(10).getMessageId());
        List<byte[]> again = Place.data(Place.receive(consumer, 10, true));
        consumer.seek(MessageId.earliest);
        List<byte[]> whole = Place.data(Place.receive(consumer, 20, true));
        consumer.seek(MessageId.latest);
        return Place.result(
                "again", Place.digest(again), "whole", Place.digest(whole), "empty", Place.nothingComes(consumer));
    }

    static Map<String, Object> seekTime(Place place) throws Exception {
        PulsarClient client = place.client();
        Consumer<byte[]> consumer = place.subscription(client).subscribe();
        Place.fill(Place.alone(client, place.topic("")), Place.payloads("seek_time", 10, 0));
        Thread.sleep(100);
        long moment = System.currentTimeMillis();
        Thread.sleep(100);
        Place.fill(Place.alone(client, place.topic("")), Place.payloads("seek_time", 10, 10));
        Place.receive(consumer, 20, true);
        consumer.seek(moment);
        List<byte[]> again = Place.data(Place.receive(consumer, 10, true));
        Reader<byte[]> reading = from(client, place, MessageId.earliest).create();
        reading.seek(moment);
        return Place.result("again", Place.digest(again), "reader", next(reading));
    }

    static Map<String, Object> lastId(Place place) throws Exception {
        PulsarClient client = place.client();
        Consumer<byte[]> consumer = place.subscription(client).subscribe();
        Producer<byte[]> producer = Place.alone(client, place.topic("")).create();
        MessageId sent = MessageId.earliest;
        for (byte[] payload : Place.payloads("last_id", 3, 0)) {
            sent = producer.send(payload);
        }
        MessageIdAdv last = (MessageIdAdv) consumer.getLastMessageIds().get(0);
        return Place.result("same", last.getEntryId() == ((MessageIdAdv) sent).getEntryId());
    }

    static Map<String, Object> tableView(Place place) throws Exception {
        PulsarClient client = place.client();
        Producer<byte[]> producer = Place.alone(client, place.topic("")).create();
        for (int number = 0; number < 20; number++) {
            producer.newMessage().key("key-" + number % 5).value(("value-" + number).getBytes()).send();
        }
        try (TableView<byte[]> view =
                client.newTableView(Schema.BYTES).topic(place.topic("")).create()) {
            List<byte[]> first = new ArrayList<>();
            for (int number = 0; number < 5; number++) {
                first.add(view.get("key-" + number));
            }
            producer.newMessage().key("key-0").value("changed".getBytes()).send();
            long giveUp = System.currentTimeMillis() + Place.PATIENCE_MILLIS;
            while (!new String(view.get("key-0")).equals("changed") && System.currentTimeMillis() < giveUp) {
                Thread.sleep(50);
            }
            return Place.result("first", Place.digest(first), "changed", new String(view.get("key-0")));
        }
    }
}
