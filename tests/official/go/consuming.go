package main

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

func sortStrings(lines []string) { sort.Strings(lines) }

func exclusive(place *Place) Result {
	client, other := place.client(), place.client()
	options := pulsar.ConsumerOptions{Topic: place.topic(""), SubscriptionName: "s"}
	consumer := must(client.Subscribe(options))
	_, refused := other.Subscribe(options)
	fill(client, alone(place.topic("")), payloads("exclusive", 20, 0))
	first := receive(consumer, 20, false)
	check(consumer.AckCumulative(first[9]))
	consumer.Close()
	again := must(other.Subscribe(options))
	return Result{
		"refused": refusal(refused), "digest": digest(data(first)),
		"again": digest(data(receive(again, 10, true))), "empty": nothingComes(again),
	}
}

func failover(place *Place) Result {
	client, other := place.client(), place.client()
	options := pulsar.ConsumerOptions{Topic: place.topic(""), SubscriptionName: "s", Type: pulsar.Failover}
	options.Name = "a"
	consumers := []pulsar.Consumer{must(client.Subscribe(options))}
	options.Name = "b"
	consumers = append(consumers, must(other.Subscribe(options)))
	time.Sleep(1500 * time.Millisecond) // the active one is chosen a second after the last change
	fill(client, alone(place.topic("")), payloads("failover", 20, 0))
	found := drain(consumers, 20)
	active := 0
	if len(found[0]) == 0 {
		active = 1
	}
	consumers[active].Close()
	fill(other, alone(place.topic("")), payloads("failover", 20, 20))
	later := receive(consumers[1-active], 20, true)
	counts := []int{len(found[0]), len(found[1])}
	sort.Ints(counts)
	return Result{"together": counts, "first": digest(data(found[active])), "later": digest(data(later))}
}

func shared(place *Place) Result {
	client, other := place.client(), place.client()
	options := pulsar.ConsumerOptions{
		Topic: place.topic(""), SubscriptionName: "s", Type: pulsar.Shared, ReceiverQueueSize: 10,
	}
	first, second := must(client.Subscribe(options)), must(other.Subscribe(options))
	fill(client, alone(place.topic("")), payloads("shared", 100, 0))
	held := receive(first, 5, false)
	first.Close()
	got := data(receive(second, 100, true))
	return Result{"held": len(held), "digest": digest(sorted(got)), "empty": nothingComes(second)}
}

func keyShared(place *Place) Result {
	const keys, count = 40, 200
	client, other := place.client(), place.client()
	options := pulsar.ConsumerOptions{Topic: place.topic(""), SubscriptionName: "s", Type: pulsar.KeyShared}
	consumers := []pulsar.Consumer{must(client.Subscribe(options)), must(other.Subscribe(options))}
	producer := must(client.CreateProducer(alone(place.topic(""))))
	for number, payload := range payloads("key_shared", count, 0) {
		message := &pulsar.ProducerMessage{Payload: payload, Key: fmt.Sprintf("key-%d", number%keys)}
		producer.SendAsync(context.Background(), message, nil)
	}
	check(producer.Flush())
	owner, last := map[string]int{}, map[string]int{}
	ordered, apart := true, true
	var numbers []int
	found := drain(consumers, count)
	for place, got := range found {
		for _, message := range got {
			var number int
			must(fmt.Sscanf(string(message.Payload()), "key_shared-%d", &number))
			numbers = append(numbers, number)
			key := message.Key()
			before, seen := last[key]
			ordered = ordered && (!seen || before < number)
			apart = apart && (!seen || owner[key] == place)
			last[key], owner[key] = number, place
		}
	}
	sort.Ints(numbers)
	var all [][]byte
	for _, number := range numbers {
		all = append(all, []byte(fmt.Sprintf("key_shared-%d", number)))
	}
	both := len(found[0]) > 0 && len(found[1]) > 0
	return Result{"digest": digest(all), "ordered": ordered, "both": both, "apart": apart}
}

func regex(place *Place) Result {
	client := place.client()
	fill(client, alone(place.topic("-a")), [][]byte{[]byte("before")})
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{
		TopicsPattern: place.topic("-.*"), SubscriptionName: "s", AutoDiscoveryPeriod: time.Second,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	}))
	got := receive(consumer, 1, true)
	fill(client, alone(place.topic("-b")), [][]byte{[]byte("comes")})
	got = append(got, receive(consumer, 1, true)...)
	fill(client, alone(place.topic("-a")), [][]byte{[]byte("stays")})
	got = append(got, receive(consumer, 1, true)...)
	deleted, _ := place.rest("DELETE", place.path("-b")+"?force=true", "")
	fill(client, alone(place.topic("-c")), [][]byte{[]byte("comes too")})
	got = append(got, receive(consumer, 1, true)...)
	return Result{"got": texts(got), "deleted": deleted}
}

func manyTopics(place *Place) Result {
	client := place.client()
	var topics []string
	for _, part := range []string{"-a", "-b", "-c"} {
		topics = append(topics, place.topic(part))
	}
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{Topics: topics, SubscriptionName: "s"}))
	for _, topic := range topics {
		fill(client, alone(topic), [][]byte{[]byte(topic[strings.LastIndex(topic, "/")+1:])})
	}
	got := texts(receive(consumer, 3, true))
	sort.Strings(got)
	return Result{"got": got}
}

func nack(place *Place) Result {
	client := place.client()
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{
		Topic: place.topic(""), SubscriptionName: "s", Type: pulsar.Shared, NackRedeliveryDelay: 200 * time.Millisecond,
	}))
	fill(client, alone(place.topic("")), payloads("nack", 5, 0))
	for _, message := range receive(consumer, 5, false) {
		if string(message.Payload()) == "nack-2" {
			consumer.Nack(message)
		} else {
			check(consumer.Ack(message))
		}
	}
	again := receive(consumer, 1, true)[0]
	return Result{
		"again": string(again.Payload()), "redelivered": again.RedeliveryCount(), "empty": nothingComes(consumer),
	}
}

func deadLetter(place *Place) Result {
	client := place.client()
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{
		Topic: place.topic(""), SubscriptionName: "s", Type: pulsar.Shared, NackRedeliveryDelay: 100 * time.Millisecond,
		DLQ: &pulsar.DLQPolicy{
			MaxDeliveries: 3, DeadLetterTopic: place.topic("-dead"), InitialSubscriptionName: "kept",
		},
	}))
	dead := must(client.Subscribe(pulsar.ConsumerOptions{
		Topic: place.topic("-dead"), SubscriptionName: "kept",
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	}))
	fill(client, alone(place.topic("")), payloads("dead_letter", 1, 0))
	var counts []uint32
	for range 3 {
		message := receive(consumer, 1, false)[0]
		counts = append(counts, message.RedeliveryCount())
		consumer.Nack(message)
	}
	letter := data(receive(dead, 1, true))
	return Result{"counts": counts, "dead": digest(letter), "empty": nothingComes(consumer)}
}

func batchIndex(place *Place) Result {
	client, other := place.client(), place.client()
	options := pulsar.ConsumerOptions{
		Topic: place.topic(""), SubscriptionName: "s", Type: pulsar.Shared, EnableBatchIndexAcknowledgment: true,
	}
	consumer := must(client.Subscribe(options))
	fill(client, together(place.topic("")), payloads("batch_index", 10, 0))
	got := receive(consumer, 10, false)
	entries := map[int64]bool{}
	for number, message := range got {
		entries[message.ID().EntryID()] = true
		if number < 4 {
			check(consumer.Ack(message))
		}
	}
	consumer.Close()
	again := must(other.Subscribe(options))
	return Result{
		"entries": len(entries), "again": digest(data(receive(again, 6, true))), "empty": nothingComes(again),
	}
}

func delayed(place *Place) Result {
	client := place.client()
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{
		Topic: place.topic(""), SubscriptionName: "s", Type: pulsar.Shared,
	}))
	producer := must(client.CreateProducer(alone(place.topic(""))))
	started := time.Now()
	send(producer, &pulsar.ProducerMessage{Payload: []byte("later"), DeliverAfter: 2500 * time.Millisecond})
	send(producer, &pulsar.ProducerMessage{Payload: []byte("now")})
	got := texts(receive(consumer, 2, true))
	waited := time.Since(started)
	return Result{"got": got, "in_time": 1400*time.Millisecond < waited}
}

func unsubscribe(place *Place) Result {
	client := place.client()
	options := pulsar.ConsumerOptions{Topic: place.topic(""), SubscriptionName: "s"}
	consumer := must(client.Subscribe(options))
	fill(client, alone(place.topic("")), payloads("unsubscribe", 3, 0))
	receive(consumer, 1, true)
	check(consumer.Unsubscribe())
	options.SubscriptionInitialPosition = pulsar.SubscriptionPositionEarliest
	again := must(client.Subscribe(options))
	got := data(receive(again, 3, true))
	status, names := place.rest("GET", place.path("")+"/subscriptions", "")
	return Result{"digest": digest(got), "status": status, "names": names}
}
