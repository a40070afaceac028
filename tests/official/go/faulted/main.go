// One topic beneath which something goes wrong:
//
//	faulted FOLDER SERVICE_URL
//
// For each line, a topic, it publishes and consumes with a client of its own, and says in a line what
// the application saw of it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/sirupsen/logrus"
)

const (
	count       = 12
	callTimeout = 6 * time.Second
	quietTime   = 3 * time.Second
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Report says what the application saw.
type Report struct {
	Errors   []string `json:"errors"`
	Received int      `json:"received"`
	Missing  int      `json:"missing"`
	Repeated int      `json:"repeated"`
}

var variable = regexp.MustCompile(`(server error: )?(\w+)(: .*)?$`)

func (r *Report) worked(kind string, err error) bool {
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		r.Errors = append(r.Errors, kind+": "+variable.ReplaceAllString(line, "$2"))
	}
	return err == nil
}

func run(client pulsar.Client, topic string) Report {
	report := Report{Errors: []string{}}
	sent, received := map[string]bool{}, map[string]bool{}
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s"})
	attached := report.worked("subscribe", err)
	producer, err := client.CreateProducer(pulsar.ProducerOptions{
		Topic: topic, DisableBatching: true, SendTimeout: callTimeout,
	})
	if report.worked("create", err) {
		for number := range count {
			payload := fmt.Sprint(number)
			_, err := producer.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte(payload)})
			if report.worked("send", err) {
				sent[payload] = true
			}
		}
	}
	for attached && len(sent) > 0 {
		soon, cancel := context.WithTimeout(context.Background(), quietTime)
		message, err := consumer.Receive(soon)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) || !report.worked("receive", err) {
			break
		}
		payload := string(message.Payload())
		if received[payload] {
			report.Repeated++
		}
		received[payload] = true
		report.worked("acknowledge", consumer.Ack(message))
		delete(sent, payload)
	}
	report.Received, report.Missing = len(received), len(sent)
	return report
}

func main() {
	logger := logrus.New()
	logger.SetOutput(must(os.Create(filepath.Join(os.Args[1], "client-go.log"))))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		client := must(pulsar.NewClient(pulsar.ClientOptions{
			URL: os.Args[2], OperationTimeout: callTimeout, Logger: log.NewLoggerWithLogrus(logger),
		}))
		fmt.Println(string(must(json.Marshal(run(client, lines.Text())))))
		client.Close()
	}
}
