package main

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

func readNext(reader pulsar.Reader) pulsar.Message {
	soon, cancel := within(patience)
	defer cancel()
	return must(reader.Next(soon))
}

func readAll(reader pulsar.Reader) []pulsar.Message {
	var found []pulsar.Message
	for reader.HasNext() {
		found = append(found, readNext(reader))
	}
	return found
}

func readFrom(client pulsar.Client, topic string, start pulsar.MessageID, inclusive bool) pulsar.Reader {
	return must(client.CreateReader(pulsar.ReaderOptions{
		Topic: topic, StartMessageID: start, StartMessageIDInclusive: inclusive,
	}))
}

func reader(place *Place) Result {
	client := place.client()
	fill(client, alone(place.topic("")), payloads("reader", 20, 0))
	whole := readAll(readFrom(client, place.topic(""), pulsar.EarliestMessageID(), false))
	behind := readFrom(client, place.topic(""), whole[9].ID(), false)
	latest := readFrom(client, place.topic(""), pulsar.LatestMessageID(), false)
	idle := latest.HasNext()
	fill(client, alone(place.topic("")), [][]byte{[]byte("news")})
	return Result{
		"digest": digest(data(whole)), "behind": string(readNext(behind).Payload()),
		"idle": idle, "news": string(readNext(latest).Payload()),
	}
}

func readerAt(place *Place) Result {
	client := place.client()
	fill(client, alone(place.topic("")), payloads("reader_at", 3, 0))
	whole := readAll(readFrom(client, place.topic(""), pulsar.EarliestMessageID(), false))
	at := readFrom(client, place.topic(""), whole[1].ID(), true)
	return Result{"at": string(readNext(at).Payload())}
}

func batchedReader(place *Place) Result {
	client := place.client()
	fill(client, together(place.topic("")), payloads("batched_reader", 10, 0))
	whole := readAll(readFrom(client, place.topic(""), pulsar.EarliestMessageID(), false))
	rest := readAll(readFrom(client, place.topic(""), whole[3].ID(), false))
	return Result{"digest": digest(data(whole)), "rest": digest(data(rest))}
}

func seekID(place *Place) Result {
	client := place.client()
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{
		Topic: place.topic(""), SubscriptionName: "s", StartMessageIDInclusive: true,
	}))
	fill(client, alone(place.topic("")), payloads("seek_id", 20, 0))
	got := receive(consumer, 20, true)
	// The ids that stand for both ends name partition -1, which this client refuses.
	check(consumer.Seek(got[10].ID()))
	again := data(receive(consumer, 10, true))
	check(consumer.Seek(pulsar.NewMessageID(-1, -1, -1, 0)))
	whole := data(receive(consumer, 20, true))
	check(consumer.Seek(pulsar.NewMessageID(math.MaxInt64, math.MaxInt64, -1, 0)))
	return Result{"again": digest(again), "whole": digest(whole), "empty": nothingComes(consumer)}
}

func seekTime(place *Place) Result {
	client := place.client()
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{Topic: place.topic(""), SubscriptionName: "s"}))
	fill(client, alone(place.topic("")), payloads("seek_time", 10, 0))
	time.Sleep(100 * time.Millisecond)
	moment := time.Now()
	time.Sleep(100 * time.Millisecond)
	fill(client, alone(place.topic("")), payloads("seek_time", 10, 10))
	receive(consumer, 20, true)
	check(consumer.SeekByTime(moment))
	again := data(receive(consumer, 10, true))
	reading := readFrom(client, place.topic(""), pulsar.EarliestMessageID(), false)
	check(reading.SeekByTime(moment))
	return Result{"again": digest(again), "reader": string(readNext(reading).Payload())}
}

func lastID(place *Place) Result {
	client := place.client()
	producer := must(client.CreateProducer(alone(place.topic(""))))
	var sent pulsar.MessageID
	for _, payload := range payloads("last_id", 3, 0) {
		sent = send(producer, &pulsar.ProducerMessage{Payload: payload})
	}
	reading := readFrom(client, place.topic(""), pulsar.EarliestMessageID(), false)
	last := must(reading.GetLastMessageID())
	return Result{"same": last.EntryID() == sent.EntryID()}
}

func tableView(place *Place) Result {
	client := place.client()
	kind := pulsar.NewStringSchema(nil)
	producer := must(client.CreateProducer(pulsar.ProducerOptions{
		Topic: place.topic(""), Schema: kind, DisableBatching: true,
	}))
	put := func(key, value string) {
		send(producer, &pulsar.ProducerMessage{Key: key, Value: value})
	}
	for number := range 20 {
		put(fmt.Sprintf("key-%d", number%5), fmt.Sprintf("value-%d", number))
	}
	view := must(client.CreateTableView(pulsar.TableViewOptions{
		Topic: place.topic(""), Schema: kind, SchemaValueType: reflect.TypeOf((*string)(nil)),
	}))
	get := func(key string) []byte {
		switch value := view.Get(key).(type) {
		case *string:
			return []byte(*value)
		case **string:
			return []byte(**value)
		}
		return nil
	}
	var first [][]byte
	for number := range 5 {
		first = append(first, get(fmt.Sprintf("key-%d", number)))
	}
	put("key-0", "changed")
	giveUp := time.Now().Add(patience)
	for string(get("key-0")) != "changed" && time.Now().Before(giveUp) {
		time.Sleep(50 * time.Millisecond)
	}
	changed := string(get("key-0"))
	view.Close()
	return Result{"first": digest(first), "changed": changed}
}
