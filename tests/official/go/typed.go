package main

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/apache/pulsar-client-go/pulsar"
)

// Person is what is sent.
type Person struct {
	Name string `json:"name" avro:"name"`
	Age  int    `json:"age" avro:"age"`
}

const (
	person = `{"type":"record","name":"Person","fields":[` +
		`{"name":"name","type":"string"},{"name":"age","type":"int"}]}`
	// stranger has the same name for something else: it is readable neither way.
	stranger = `{"type":"record","name":"Person","fields":[` +
		`{"name":"name","type":"int"},{"name":"town","type":"string"}]}`
)

func (place *Place) schemaPath() string {
	return fmt.Sprintf("schemas/%s/schema", strings.TrimPrefix(place.topic(""), "persistent://"))
}

func exchange[T any](place *Place, kind pulsar.Schema, values []T, registered string) Result {
	client := place.client()
	producer := must(client.CreateProducer(pulsar.ProducerOptions{
		Topic: place.topic(""), Schema: kind, DisableBatching: true,
	}))
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{
		Topic: place.topic(""), SubscriptionName: "s", Schema: kind,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	}))
	for number := range values {
		send(producer, &pulsar.ProducerMessage{Value: &values[number]})
	}
	var got []T
	for _, message := range receive(consumer, len(values), true) {
		var value T
		check(message.GetSchemaValue(&value))
		got = append(got, value)
	}
	status, answer := place.rest("GET", place.schemaPath(), "")
	found, _ := answer.(map[string]any)
	return Result{
		"same": reflect.DeepEqual(got, values), "status": status,
		"registered": found["type"] == registered, "version": found["version"],
	}
}

func schemaString(place *Place) Result {
	client := place.client()
	kind := pulsar.NewStringSchema(nil)
	producer := must(client.CreateProducer(pulsar.ProducerOptions{Topic: place.topic(""), Schema: kind}))
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{
		Topic: place.topic(""), SubscriptionName: "s", Schema: kind,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	}))
	same := true
	for number := range 5 {
		send(producer, &pulsar.ProducerMessage{Value: fmt.Sprintf("text %d", number)})
	}
	for number, message := range receive(consumer, 5, true) {
		var value *string
		check(message.GetSchemaValue(&value))
		same = same && *value == fmt.Sprintf("text %d", number)
	}
	status, answer := place.rest("GET", place.schemaPath(), "")
	found, _ := answer.(map[string]any)
	return Result{
		"same": same, "status": status, "registered": found["type"] == "STRING", "version": found["version"],
	}
}

func records(place *Place, kind, other pulsar.Schema, registered string) Result {
	var people []Person
	for number := range 5 {
		people = append(people, Person{Name: fmt.Sprintf("name %d", number), Age: number})
	}
	found := exchange(place, kind, people, registered)
	_, err := place.client().CreateProducer(pulsar.ProducerOptions{Topic: place.topic(""), Schema: other})
	found["refused"] = refusal(err)
	return found
}

func schemaJSON(place *Place) Result {
	return records(place, pulsar.NewJSONSchema(person, nil), pulsar.NewJSONSchema(stranger, nil), "JSON")
}

func schemaAvro(place *Place) Result {
	return records(place, pulsar.NewAvroSchema(person, nil), pulsar.NewAvroSchema(stranger, nil), "AVRO")
}

func schemaDeleted(place *Place) Result {
	client := place.client()
	options := pulsar.ProducerOptions{Topic: place.topic(""), Schema: pulsar.NewJSONSchema(person, nil)}
	must(client.CreateProducer(options)).Close()
	status, _ := place.rest("DELETE", place.schemaPath()+"?force=true", "")
	options.Schema = pulsar.NewJSONSchema(stranger, nil)
	_, err := client.CreateProducer(options)
	return Result{"status": status, "refused": refusal(err)}
}

func missingTopic(place *Place) Result {
	_, err := place.client().CreateProducer(pulsar.ProducerOptions{Topic: "persistent://public/nowhere-at-all/topic"})
	return Result{"refused": err != nil && err.Error() != ""}
}
