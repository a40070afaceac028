package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/sirupsen/logrus"
)

const (
	patience = 15 * time.Second       // for a message that must come
	quiet    = 300 * time.Millisecond // in which one that must not come would have come
)

// Result is what a scenario saw.
type Result map[string]any

// Place is where a scenario runs: servers, a namespace, and its clients.
type Place struct {
	serviceURL, adminURL, namespace, folder, name string

	logTo   io.Writer
	clients []pulsar.Client
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func (place *Place) topic(part string) string {
	return fmt.Sprintf("persistent://%s/%s%s", place.namespace, place.name, part)
}

func (place *Place) path(part string) string {
	return strings.Replace(place.topic(part), "://", "/", 1)
}

func (place *Place) options() pulsar.ClientOptions {
	logger := logrus.New()
	logger.SetOutput(place.logTo)
	return pulsar.ClientOptions{
		URL:              place.serviceURL,
		OperationTimeout: 20 * time.Second,
		Logger:           log.NewLoggerWithLogrus(logger),
	}
}

func (place *Place) client() pulsar.Client {
	client := must(pulsar.NewClient(place.options()))
	place.clients = append(place.clients, client)
	return client
}

func (place *Place) close() {
	for _, client := range place.clients {
		client.Close()
	}
}

// rest asks the admin REST API; it returns the status and what was answered.
func (place *Place) rest(method, path, body string) (int, any) {
	url := fmt.Sprintf("%s/admin/v2/%s", place.adminURL, path)
	request := must(http.NewRequest(method, url, strings.NewReader(body)))
	request.Header.Set("Content-Type", "application/json")
	answer := must(http.DefaultClient.Do(request))
	defer answer.Body.Close()
	var found any
	_ = json.Unmarshal(must(io.ReadAll(answer.Body)), &found)
	return answer.StatusCode, found
}

func payloads(name string, count, start int) [][]byte {
	var found [][]byte
	for number := start; number < start+count; number++ {
		found = append(found, []byte(fmt.Sprintf("%s-%d", name, number)))
	}
	return found
}

func digest(messages [][]byte) string {
	hash := sha256.New()
	for _, message := range messages {
		hash.Write(message)
		hash.Write([]byte("\n"))
	}
	return hex.EncodeToString(hash.Sum(nil))
}

func data(messages []pulsar.Message) [][]byte {
	var found [][]byte
	for _, message := range messages {
		found = append(found, message.Payload())
	}
	return found
}

func texts(messages []pulsar.Message) []string {
	var found []string
	for _, message := range messages {
		found = append(found, string(message.Payload()))
	}
	return found
}

func within(time time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time)
}

// receive returns the next messages.
func receive(consumer pulsar.Consumer, count int, ack bool) []pulsar.Message {
	var found []pulsar.Message
	for len(found) < count {
		soon, cancel := within(patience)
		message := must(consumer.Receive(soon))
		cancel()
		if ack {
			check(consumer.Ack(message))
		}
		found = append(found, message)
	}
	return found
}

func nothingComes(consumer pulsar.Consumer) bool {
	soon, cancel := within(quiet)
	defer cancel()
	_, err := consumer.Receive(soon)
	return errors.Is(err, context.DeadlineExceeded)
}

// drain returns what each of several consumers got until so many came in all.
func drain(consumers []pulsar.Consumer, count int) [][]pulsar.Message {
	found := make([][]pulsar.Message, len(consumers))
	giveUp := time.Now().Add(patience)
	for all := 0; all < count && time.Now().Before(giveUp); {
		for place, consumer := range consumers {
			soon, cancel := within(5 * time.Millisecond)
			message, err := consumer.Receive(soon)
			cancel()
			if err == nil {
				check(consumer.Ack(message))
				found[place] = append(found[place], message)
				all++
			}
		}
	}
	return found
}

// fill sends messages to a topic.
func fill(client pulsar.Client, options pulsar.ProducerOptions, messages [][]byte) {
	producer := must(client.CreateProducer(options))
	for _, message := range messages {
		producer.SendAsync(context.Background(), &pulsar.ProducerMessage{Payload: message}, nil)
	}
	check(producer.Flush())
	producer.Close()
}

func alone(topic string) pulsar.ProducerOptions {
	return pulsar.ProducerOptions{Topic: topic, DisableBatching: true}
}

func together(topic string) pulsar.ProducerOptions {
	return pulsar.ProducerOptions{Topic: topic, BatchingMaxPublishDelay: 5 * time.Second}
}

func send(producer pulsar.Producer, message *pulsar.ProducerMessage) pulsar.MessageID {
	return must(producer.Send(context.Background(), message))
}

var serverError = regexp.MustCompile(`(?:server error: |.*[.])?(\w+): `)

// refusal returns the server's name of an error; empty if there is none.
func refusal(err error) string {
	if err == nil {
		return ""
	}
	if found := serverError.FindStringSubmatch(err.Error()); found != nil {
		return found[1]
	}
	return err.Error()
}

func sorted(messages [][]byte) [][]byte {
	found := bytes.Join(messages, []byte("\n"))
	lines := strings.Split(string(found), "\n")
	sortStrings(lines)
	var result [][]byte
	for _, line := range lines {
		result = append(result, []byte(line))
	}
	return result
}
