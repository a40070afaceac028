package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/crypto"
)

func plain(place *Place) Result {
	client := place.client()
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{Topic: place.topic(""), SubscriptionName: "s"}))
	producer := must(client.CreateProducer(alone(place.topic(""))))
	for number, payload := range payloads("plain", 50, 0) {
		send(producer, &pulsar.ProducerMessage{
			Payload:    payload,
			Properties: map[string]string{"number": fmt.Sprint(number)},
			Key:        fmt.Sprintf("key-%d", number),
			EventTime:  time.UnixMilli(int64(1000 + number)),
		})
	}
	got := receive(consumer, 50, true)
	carried := true
	for number, message := range got {
		carried = carried && message.Properties()["number"] == fmt.Sprint(number) &&
			message.Key() == fmt.Sprintf("key-%d", number) &&
			message.EventTime().UnixMilli() == int64(1000+number)
	}
	return Result{"digest": digest(data(got)), "carried": carried, "empty": nothingComes(consumer)}
}

func orderingKey(place *Place) Result {
	client := place.client()
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{Topic: place.topic(""), SubscriptionName: "s"}))
	producer := must(client.CreateProducer(alone(place.topic(""))))
	send(producer, &pulsar.ProducerMessage{Payload: []byte("ordered"), OrderingKey: "first"})
	return Result{"key": receive(consumer, 1, true)[0].OrderingKey()}
}

func batched(place *Place) Result {
	client := place.client()
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{Topic: place.topic(""), SubscriptionName: "s"}))
	producer := must(client.CreateProducer(pulsar.ProducerOptions{Topic: place.topic(""), BatchingMaxMessages: 100}))
	refused := make(chan error, 1000)
	for _, payload := range payloads("batched", 1000, 0) {
		producer.SendAsync(context.Background(), &pulsar.ProducerMessage{Payload: payload},
			func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { refused <- err })
	}
	check(producer.Flush())
	bad, receipts := 0, 0
	for range 1000 {
		if err := <-refused; err != nil {
			bad++
		}
		receipts++
	}
	return Result{"digest": digest(data(receive(consumer, 1000, true))), "receipts": receipts, "refused": bad}
}

func compressed(place *Place) Result {
	client := place.client()
	found := Result{}
	codecs := map[string]pulsar.CompressionType{
		"lz4": pulsar.LZ4, "zlib": pulsar.ZLib, "zstd": pulsar.ZSTD, "snappy": pulsar.SNAPPY,
	}
	for name, codec := range codecs {
		topic := place.topic("-" + name)
		consumer := must(client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s"}))
		var messages [][]byte
		for _, payload := range payloads("compressed", 20, 0) {
			messages = append(messages, bytes.Repeat(payload, 100))
		}
		for _, single := range []bool{true, false} {
			fill(client, pulsar.ProducerOptions{Topic: topic, CompressionType: codec, DisableBatching: single}, messages)
		}
		found[name] = digest(data(receive(consumer, 40, true)))
	}
	return found
}

func chunked(place *Place) Result {
	const size = 12 << 20
	client := place.client()
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{Topic: place.topic(""), SubscriptionName: "s"}))
	producer := must(client.CreateProducer(pulsar.ProducerOptions{
		Topic: place.topic(""), EnableChunking: true, DisableBatching: true,
	}))
	line := bytes.Join(payloads("chunked", 100, 0), nil)
	send(producer, &pulsar.ProducerMessage{Payload: bytes.Repeat(line, size/len(line)+1)[:size]})
	got := data(receive(consumer, 1, true))
	return Result{"bytes": len(got[0]), "digest": digest(got)}
}

func accessModes(place *Place) Result {
	client, other := place.client(), place.client()
	options := pulsar.ProducerOptions{Topic: place.topic(""), ProducerAccessMode: pulsar.ProducerAccessModeExclusive}
	once := uint(0)
	patient := options
	patient.MaxReconnectToBroker = &once
	first := must(client.CreateProducer(options))
	_, exclusive := other.CreateProducer(patient)
	_, shared := other.CreateProducer(pulsar.ProducerOptions{Topic: place.topic("")})
	first.Close()
	must(other.CreateProducer(options))
	return Result{"exclusive": exclusive != nil, "shared": shared != nil}
}

func producerNames(place *Place) Result {
	client, other := place.client(), place.client()
	options := pulsar.ProducerOptions{Topic: place.topic(""), Name: "one"}
	first := must(client.CreateProducer(options))
	_, err := other.CreateProducer(options)
	first.Close()
	again := must(other.CreateProducer(options))
	return Result{"refused": err != nil, "again": again.Name()}
}

func encrypted(place *Place) Result {
	client := place.client()
	keys := crypto.NewFileKeyReader(filepath.Join(place.folder, "public.pem"), filepath.Join(place.folder, "private.pem"))
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{
		Topic: place.topic(""), SubscriptionName: "s",
		Decryption: &pulsar.MessageDecryptionInfo{KeyReader: keys},
	}))
	fill(client, pulsar.ProducerOptions{
		Topic:      place.topic(""),
		Encryption: &pulsar.ProducerEncryptionInfo{KeyReader: keys, Keys: []string{"floodgate.key"}},
	}, payloads("encrypted", 20, 0))
	return Result{"digest": digest(data(receive(consumer, 20, true)))}
}

func partitioned(place *Place) Result {
	status, _ := place.rest("PUT", place.path("")+"/partitions", "3")
	client := place.client()
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{Topic: place.topic(""), SubscriptionName: "s"}))
	producer := must(client.CreateProducer(pulsar.ProducerOptions{Topic: place.topic(""), DisableBatching: true}))
	for _, payload := range payloads("partitioned", 30, 0) {
		send(producer, &pulsar.ProducerMessage{Payload: payload})
	}
	got := receive(consumer, 30, true)
	used := map[string]bool{}
	for _, message := range got {
		used[message.Topic()] = true
	}
	var partitions []string
	for _, name := range must(client.TopicPartitions(place.topic(""))) {
		partitions = append(partitions, name[strings.LastIndex(name, "-")+1:])
	}
	return Result{
		"created": status, "digest": digest(sorted(data(got))), "partitions": partitions, "used": len(used),
	}
}

func nonPersistent(place *Place) Result {
	client := place.client()
	topic := "non-" + place.topic("")
	consumer := must(client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Type: pulsar.Shared}))
	fill(client, alone(topic), payloads("non_persistent", 20, 0))
	return Result{"digest": digest(sorted(data(receive(consumer, 20, true))))}
}

func transactions(place *Place) Result {
	options := place.options()
	options.EnableTransaction = true
	client, err := pulsar.NewClient(options)
	if err == nil {
		place.clients = append(place.clients, client)
		_, err = client.NewTransaction(time.Minute)
	}
	return Result{"refused": err != nil && err.Error() != ""}
}
