// Tests of a program that uses Pulsar: messages, topics found by a pattern, a fault, and an hour.
package clienttests

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

const (
	faults      = "/admin/v2/floodgate/faults"
	refusedOnce = `{"on": ["SUBSCRIBE"], "when": {"times": 1}, "do": {"action": "error", "error": "ServiceNotReady"}}`
)

func TestAnOrderArrives(t *testing.T) {
	client := newClient(t)
	consumer := subscribe(t, client, pulsar.ConsumerOptions{Topic: "orders"})
	send(t, client, "orders", "two teas")
	if order := receive(t, consumer); order != "two teas" {
		t.Fatalf("%q arrived", order)
	}
}

func TestOrdersOfAllCountriesAreFound(t *testing.T) {
	client := newClient(t)
	for _, topic := range []string{"orders-eu", "orders-us", "invoices-eu"} {
		send(t, client, topic, topic)
	}
	consumer := subscribe(t, client, pulsar.ConsumerOptions{
		TopicsPattern:               "persistent://public/default/orders-.*",
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	found := map[string]bool{receive(t, consumer): true, receive(t, consumer): true}
	if !found["orders-eu"] || !found["orders-us"] {
		t.Fatalf("%v arrived", found)
	}
}

func TestARefusedSubscriptionIsTriedAgain(t *testing.T) {
	client := newClient(t)
	ask(t, http.MethodPost, faults, refusedOnce)
	consumer := subscribe(t, client, pulsar.ConsumerOptions{Topic: "orders"})
	send(t, client, "orders", "one tea")
	if order := receive(t, consumer); order != "one tea" {
		t.Fatalf("%q arrived", order)
	}
	if said := ask(t, http.MethodGet, faults, ""); !strings.Contains(said, `"fired":1,`) {
		t.Fatal(said)
	}
}

func TestAnOrderComesAnHourLater(t *testing.T) {
	client := newClient(t)
	consumer := subscribe(t, client, pulsar.ConsumerOptions{Topic: "orders", Type: pulsar.Shared})
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	late := &pulsar.ProducerMessage{Payload: []byte("late tea"), DeliverAfter: time.Hour}
	if _, err := producer.Send(context.Background(), late); err != nil {
		t.Fatal(err)
	}
	advance(t, "1h")
	if order := receive(t, consumer); order != "late tea" {
		t.Fatalf("%q arrived", order)
	}
}

func subscribe(t *testing.T, client pulsar.Client, options pulsar.ConsumerOptions) pulsar.Consumer {
	t.Helper()
	options.SubscriptionName = "billing"
	consumer, err := client.Subscribe(options)
	for tries := 1; err != nil && tries < 3; tries++ { // a refusal does not end this program
		consumer, err = client.Subscribe(options)
	}
	if err != nil {
		t.Fatal(err)
	}
	return consumer
}

func send(t *testing.T, client pulsar.Client, topic, order string) {
	t.Helper()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := producer.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte(order)}); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, consumer pulsar.Consumer) string {
	t.Helper()
	soon, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	message, err := consumer.Receive(soon)
	if err != nil {
		t.Fatal(err)
	}
	if err := consumer.Ack(message); err != nil {
		t.Fatal(err)
	}
	return string(message.Payload())
}
