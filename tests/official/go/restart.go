package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// received returns all that comes: patiently until so many are there, as clients reconnect slowly.
func received(consumer pulsar.Consumer, wanted int) map[string]bool {
	found := map[string]bool{}
	for {
		wait := quiet
		if len(found) < wanted {
			wait = patience
		}
		soon, cancel := within(wait)
		message, err := consumer.Receive(soon)
		cancel()
		if err != nil {
			return found
		}
		check(consumer.Ack(message))
		found[string(message.Payload())] = true
	}
}

func sortedKeys(found map[string]bool) [][]byte {
	var keys [][]byte
	for key := range found {
		keys = append(keys, []byte(key))
	}
	return sorted(keys)
}

// restart: nothing that was receipted is lost when the broker is killed beneath open clients.
func restart(place *Place) Result {
	const count = 200
	client := place.client()
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{
		Topic: place.topic(""), SubscriptionName: "s", Type: pulsar.Shared,
	}))
	quick := must(client.Subscribe(pulsar.ConsumerOptions{Topic: place.topic(""), SubscriptionName: "quick"}))
	producer := must(client.CreateProducer(pulsar.ProducerOptions{
		Topic: place.topic(""), DisableBatching: true, SendTimeout: time.Minute,
	}))
	batching := must(client.CreateProducer(pulsar.ProducerOptions{Topic: place.topic("")}))
	for number, payload := range payloads("restart", count, 0) {
		through := batching
		if number%10 == 0 {
			through = producer
		}
		through.SendAsync(context.Background(), &pulsar.ProducerMessage{Payload: payload}, nil)
	}
	check(batching.Flush())
	check(producer.Flush())
	receive(consumer, count/2, true)
	fmt.Println(`{"scenario": "restart", "at": "kill"}`)
	must(bufio.NewReader(os.Stdin).ReadString('\n'))
	more := payloads("restart", count, count)
	for _, payload := range more {
		send(producer, &pulsar.ProducerMessage{Payload: payload})
	}
	stored := map[string]bool{}
	for _, message := range readAll(readFrom(client, place.topic(""), pulsar.EarliestMessageID(), false)) {
		stored[string(message.Payload())] = true
	}
	got, rest := received(quick, 2*count), received(consumer, count+count/2)
	left := len(rest) >= count+count/2
	for _, payload := range more {
		left = left && rest[string(payload)]
	}
	late := must(client.Subscribe(pulsar.ConsumerOptions{
		Topic: place.topic(""), SubscriptionName: "late",
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	}))
	return Result{
		"quick": digest(sortedKeys(got)), "left": left, "stored": digest(sortedKeys(stored)),
		"late": !nothingComes(late),
	}
}
