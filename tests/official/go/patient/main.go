// The client as a program that the proof clients.patience talks to: patient FOLDER. See tests/proof/patience/program.py.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/sirupsen/logrus"
)

const patience = 5 * time.Second

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

type cell struct {
	client   pulsar.Client
	consumer pulsar.Consumer
	producer pulsar.Producer
}

func (c *cell) open(url string, logger *logrus.Logger) {
	c.client = must(pulsar.NewClient(pulsar.ClientOptions{
		URL: url, OperationTimeout: patience, Logger: log.NewLoggerWithLogrus(logger),
	}))
}

func (c *cell) does(words []string, logger *logrus.Logger) (err error) {
	switch words[1] {
	case "consumer":
		c.open(words[2], logger)
		c.consumer, err = c.client.Subscribe(pulsar.ConsumerOptions{Topic: words[3], SubscriptionName: "s"})
	case "producer":
		c.open(words[2], logger)
		c.producer, err = c.client.CreateProducer(pulsar.ProducerOptions{Topic: words[3], SendTimeout: patience})
	case "use":
		if c.producer != nil {
			_, err = c.producer.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte("x")})
			return err
		}
		soon, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		message, err := c.consumer.Receive(soon)
		if err == nil {
			err = c.consumer.Ack(message)
		}
		return err
	case "last":
		_, err = c.consumer.GetLastMessageIDs()
	case "seek":
		err = c.consumer.SeekByTime(time.UnixMilli(1)) // its earliest id is of no partition
	default:
		c.client.Close()
	}
	return err
}

var (
	ofServer = regexp.MustCompile(`server error: (\w+)`)
	notWords = regexp.MustCompile(`\W+`)
)

func name(err error) string {
	if err == nil {
		return "ok"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "Timeout"
	}
	if found := ofServer.FindStringSubmatch(err.Error()); found != nil {
		return found[1]
	}
	words := notWords.Split(err.Error(), -1)
	return strings.Join(words[:min(len(words), 4)], "-")
}

func main() {
	logger := logrus.New()
	logger.SetOutput(must(os.Create(filepath.Join(os.Args[1], "client-go.log"))))
	cells := map[string]*cell{}
	var saying sync.Mutex
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if cells[words[0]] == nil {
			cells[words[0]] = &cell{}
		}
		one := cells[words[0]]
		go func() {
			said := name(one.does(words, logger))
			saying.Lock()
			defer saying.Unlock()
			fmt.Println(words[0], said)
		}()
	}
}
