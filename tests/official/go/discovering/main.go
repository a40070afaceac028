// One consumer of a pattern:
//
//	discovering SERVICE_URL PATTERN PERIOD OPERATION_SECONDS
//
// Says subscribed or refused, and closes the consumer when its standard input ends.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/sirupsen/logrus"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func seconds(text string) time.Duration {
	return time.Duration(must(strconv.Atoi(text))) * time.Second
}

func main() {
	logger := logrus.New()
	logger.SetOutput(must(os.Create("go.log")))
	client := must(pulsar.NewClient(pulsar.ClientOptions{
		URL:              os.Args[1],
		OperationTimeout: seconds(os.Args[4]),
		Logger:           log.NewLoggerWithLogrus(logger),
	}))
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{
		TopicsPattern:       os.Args[2],
		SubscriptionName:    "s",
		AutoDiscoveryPeriod: seconds(os.Args[3]),
		Properties:          map[string]string{"team": "red"},
	})
	if err != nil {
		fmt.Println("refused", err)
		return
	}
	fmt.Println("subscribed")
	must(io.ReadAll(os.Stdin))
	consumer.Close()
	client.Close()
}
