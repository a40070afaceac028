// Clients under load, with the timeouts that they have by themselves:
//
//	loading FOLDER WAY=URL ...
//
// A line on standard input ends the producing; what the calls did is the last line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
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

const (
	topics     = 2
	pauseTime  = 20 * time.Millisecond
	quietTime  = 30 * time.Second
	callTime   = 30 * time.Second
	againTime  = 100 * time.Millisecond
	namespace  = "persistent://public/default/"
	anyOfThese = "-[0-9]"
)

var types = map[string]pulsar.SubscriptionType{
	"exclusive":  pulsar.Exclusive,
	"shared":     pulsar.Shared,
	"failover":   pulsar.Failover,
	"key_shared": pulsar.KeyShared,
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Report says what the calls of all ways did: how many of each kind, the longest, and what failed.
type Report struct {
	sync.Mutex `json:"-"`
	Calls      map[string]int            `json:"calls"`
	Longest    map[string]float64        `json:"longest_seconds"`
	Failures   []string                  `json:"failures"`
	TriedAgain map[string]int            `json:"tried_again"`
	Receipted  int                       `json:"receipted"`
	Repeated   int                       `json:"repeated"`
	Missing    map[string]map[string]int `json:"missing"`
}

func (r *Report) note(kind string, took time.Duration) {
	r.Lock()
	defer r.Unlock()
	r.Calls[kind]++
	r.Longest[kind] = max(r.Longest[kind], took.Seconds())
}

// do makes a call and tells if it worked.
func (r *Report) do(kind string, call func() error) bool {
	began := time.Now()
	err := call()
	took := time.Since(began)
	r.note(kind, took)
	if err != nil {
		r.Lock()
		defer r.Unlock()
		r.Failures = append(r.Failures, fmt.Sprintf("%s: %s after %.1f s", kind, firstLine(err), took.Seconds()))
	}
	return err == nil
}

var ofTopic = regexp.MustCompile(`topic=\S+: `)

func (r *Report) triedAgain(err error) {
	r.Lock()
	defer r.Unlock()
	r.TriedAgain[ofTopic.ReplaceAllString(firstLine(err), "")]++
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line[:min(len(line), 150)]
}

// Subscribed is a subscription of one topic, or of all.
type Subscribed struct{ kind, topic string }

// Way has the clients of one service URL.
type Way struct {
	name      string
	client    pulsar.Client
	report    *Report
	lock      sync.Mutex
	receipted map[string]map[string]bool
	received  map[Subscribed]map[string]bool
	stopping  chan struct{}
	producing sync.WaitGroup
}

func (w *Way) stopped() bool {
	select {
	case <-w.stopping:
		return true
	default:
		return false
	}
}

func (w *Way) start() {
	everything := namespace + w.name + anyOfThese
	producers := map[string]pulsar.Producer{}
	for number := range topics {
		topic := fmt.Sprintf("%s%s-%d", namespace, w.name, number)
		w.receipted[topic] = map[string]bool{}
		producers[topic] = must(w.client.CreateProducer(pulsar.ProducerOptions{Topic: topic}))
		for kind, subscriptionType := range types {
			w.consumed(Subscribed{kind, topic}, pulsar.ConsumerOptions{
				Topic: topic, SubscriptionName: kind, Type: subscriptionType,
			})
		}
	}
	w.consumed(Subscribed{"pattern", ""}, pulsar.ConsumerOptions{
		TopicsPattern: everything, SubscriptionName: "pattern",
	})
	for topic, producer := range producers {
		w.begin(func() { w.produce(topic, producer) })
	}
	w.begin(func() { w.list(everything) })
}

func (w *Way) begin(work func()) {
	w.producing.Add(1)
	go func() {
		defer w.producing.Done()
		for !w.stopped() {
			work()
			time.Sleep(pauseTime)
		}
	}()
}

func (w *Way) produce(topic string, producer pulsar.Producer) {
	w.lock.Lock()
	number := len(w.receipted[topic])
	w.lock.Unlock()
	payload := fmt.Sprintf("%s %d %d", topic, number, time.Now().UnixNano())
	message := pulsar.ProducerMessage{Payload: []byte(payload), Key: fmt.Sprint(number % 7)}
	worked := w.report.do("send", func() error {
		_, err := producer.Send(context.Background(), &message)
		return err
	})
	if worked {
		w.lock.Lock()
		w.receipted[topic][payload] = true
		w.lock.Unlock()
	}
}

// list attaches a consumer of a pattern: each time the topics are listed. This client tries each
// step of that once, on whatever server; so does it again who uses it, for as long as any call may last.
func (w *Way) list(everything string) {
	var consumer pulsar.Consumer
	worked := w.report.do("subscribe to a pattern", func() (err error) {
		for began := time.Now(); time.Since(began) < callTime; time.Sleep(againTime) {
			consumer, err = w.client.Subscribe(pulsar.ConsumerOptions{
				TopicsPattern: everything, SubscriptionName: "again",
			})
			if err == nil {
				return nil
			}
			w.report.triedAgain(err)
		}
		return err
	})
	if worked {
		began := time.Now()
		consumer.Close()
		w.report.note("close", time.Since(began))
	}
}

func (w *Way) consumed(which Subscribed, options pulsar.ConsumerOptions) {
	w.lock.Lock()
	w.received[which] = map[string]bool{}
	w.lock.Unlock()
	consumer := must(w.client.Subscribe(options))
	go func() {
		last := time.Now()
		for {
			message, err := consumer.Receive(context.Background())
			if err != nil {
				w.report.do("receive", func() error { return err })
				return
			}
			if !w.stopped() {
				w.report.note("between two messages, "+which.kind, time.Since(last))
			}
			last = time.Now()
			w.got(which, string(message.Payload()))
			w.report.do("acknowledge", func() error { return consumer.Ack(message) })
		}
	}()
}

func (w *Way) got(which Subscribed, payload string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.received[which][payload] {
		w.report.Lock()
		w.report.Repeated++
		w.report.Unlock()
	}
	w.received[which][payload] = true
}

// missing returns how many receipted messages each kind of subscription did not get, and their sum.
func (w *Way) missing() (map[string]int, int) {
	w.lock.Lock()
	defer w.lock.Unlock()
	found, sum := map[string]int{}, 0
	for which, got := range w.received {
		for topic, payloads := range w.receipted {
			for payload := range payloads {
				if (which.topic == "" || which.topic == topic) && !got[payload] {
					found[which.kind]++
					sum++
				}
			}
		}
	}
	return found, sum
}

// finish stops producing, and lets the consumers get the rest.
func (w *Way) finish() {
	close(w.stopping)
	w.producing.Wait()
	last := time.Now()
	_, left := w.missing()
	for left > 0 && time.Since(last) < quietTime {
		time.Sleep(100 * time.Millisecond)
		before := left
		if _, left = w.missing(); left != before {
			last = time.Now()
		}
	}
	found, _ := w.missing()
	w.report.Missing[w.name] = found
	for _, payloads := range w.receipted {
		w.report.Receipted += len(payloads)
	}
}

func main() {
	logger := logrus.New()
	logger.SetOutput(must(os.Create(filepath.Join(os.Args[1], "client-go.log"))))
	report := &Report{
		Calls: map[string]int{}, Longest: map[string]float64{},
		Failures: []string{}, TriedAgain: map[string]int{}, Missing: map[string]map[string]int{},
	}
	var ways []*Way
	for _, argument := range os.Args[2:] {
		name, url, _ := strings.Cut(argument, "=")
		client := must(pulsar.NewClient(pulsar.ClientOptions{
			URL: url, Logger: log.NewLoggerWithLogrus(logger),
		}))
		ways = append(ways, &Way{
			name: name, client: client, report: report, stopping: make(chan struct{}),
			receipted: map[string]map[string]bool{}, received: map[Subscribed]map[string]bool{},
		})
	}
	for _, way := range ways {
		way.start()
	}
	fmt.Println(`"started"`)
	bufio.NewReader(os.Stdin).ReadString('\n')
	for _, way := range ways {
		way.finish()
	}
	report.Lock()
	fmt.Println(string(must(json.Marshal(report))))
}
