package clienttests

import (
	"context"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

func TestOrdersArrive(t *testing.T) {
	topic := "persistent://" + newNamespace(t) + "/orders"
	client := newClient(t)
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic})
	if err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := producer.Send(soon, &pulsar.ProducerMessage{Payload: []byte("one")}); err != nil {
		t.Fatal(err)
	}
	message, err := consumer.Receive(soon)
	if err != nil {
		t.Fatal(err)
	}
	if string(message.Payload()) != "one" {
		t.Fatalf("%q arrived", message.Payload())
	}
	if err := consumer.Ack(message); err != nil {
		t.Fatal(err)
	}
}
