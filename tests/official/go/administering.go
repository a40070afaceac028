package main

import (
	"fmt"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// httpLookup: a client whose service URL is that of the web port.
func httpLookup(place *Place) Result {
	options := place.options()
	options.URL = place.adminURL
	client := must(pulsar.NewClient(options))
	place.clients = append(place.clients, client)
	fill(client, alone(place.topic("-a")), payloads("http_lookup", 10, 0))
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{
		TopicsPattern: place.topic("-.*"), SubscriptionName: "s",
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	}))
	partitions := must(client.TopicPartitions(place.topic("-a")))
	return Result{"digest": digest(data(receive(consumer, 10, true))), "partitions": len(partitions)}
}

// deduplicated: what was sent already is not stored again.
func deduplicated(place *Place) Result {
	namespace := place.namespace + "-dedup"
	place.rest("PUT", "namespaces/"+namespace, "{}")
	status, _ := place.rest("POST", "namespaces/"+namespace+"/deduplication", "true")
	options := alone("persistent://" + namespace + "/deduplicated")
	options.Name = "one"
	client := place.client()
	producer := must(client.CreateProducer(options))
	before := producer.LastSequenceID()
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{Topic: options.Topic, SubscriptionName: "s"}))
	numbered := func(producer pulsar.Producer, number int64) {
		send(producer, &pulsar.ProducerMessage{
			Payload: []byte(fmt.Sprintf("deduplicated-%d", number)), SequenceID: &number,
		})
	}
	for _, number := range []int64{0, 1, 2, 1, 2} {
		numbered(producer, number)
	}
	producer.Close()
	again := must(client.CreateProducer(options))
	known := again.LastSequenceID()
	numbered(again, 2)
	return Result{
		"status": status, "before": before, "known": known,
		"digest": digest(data(receive(consumer, 3, true))), "empty": nothingComes(consumer),
	}
}

// compacted: after compaction the newest value of each key is left for those who ask for it.
func compacted(place *Place) Result {
	client := place.client()
	options := pulsar.ConsumerOptions{Topic: place.topic(""), SubscriptionName: "s", ReadCompacted: true}
	must(client.Subscribe(options)).Close()
	producer := must(client.CreateProducer(alone(place.topic(""))))
	for number, payload := range payloads("compacted", 20, 0) {
		send(producer, &pulsar.ProducerMessage{Payload: payload, Key: fmt.Sprintf("key-%d", number%5)})
	}
	path := place.path("") + "/compaction"
	started, _ := place.rest("PUT", path, "")
	var status any = "RUNNING"
	for giveUp := time.Now().Add(patience); status == "RUNNING" && time.Now().Before(giveUp); {
		time.Sleep(100 * time.Millisecond)
		_, answer := place.rest("GET", path, "")
		found, _ := answer.(map[string]any)
		status = found["status"]
	}
	time.Sleep(500 * time.Millisecond)
	consumer := must(client.Subscribe(options))
	read := must(client.CreateReader(pulsar.ReaderOptions{
		Topic: place.topic(""), StartMessageID: pulsar.EarliestMessageID(), ReadCompacted: true,
	}))
	whole := readFrom(client, place.topic(""), pulsar.EarliestMessageID(), false)
	return Result{
		"started": started, "status": status, "consumed": digest(data(receive(consumer, 5, true))),
		"read": digest(data(readAll(read))), "whole": digest(data(readAll(whole))),
	}
}
