// Package clienttests shows a broker for the tests of a program that uses Pulsar: all tests share the
// broker, which is empty at the start of each. FLOODGATE_BROKER names the program if floodgate-broker is not on the path.
package clienttests

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"
)

var serviceURL, webURL string

func TestMain(m *testing.M) {
	code, err := withBroker(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withBroker(run func() int) (int, error) {
	program := os.Getenv("FLOODGATE_BROKER")
	if program == "" {
		program = "floodgate-broker"
	}
	command := exec.Command(program,
		"--set", "brokerServicePort=0", "--set", "webServicePort=0", // free ports
		"--set", "bindAddress=127.0.0.1", "--set", "advertisedAddress=127.0.0.1",
		"--set", "floodgateFaultsEnabled=true") // faults, and the reset
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := command.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	}()
	// The broker's first line: READY broker pulsar://host:port http://host:port
	line, _ := bufio.NewReader(output).ReadString('\n')
	words := strings.Fields(line)
	if len(words) != 4 || words[0] != "READY" {
		return 0, fmt.Errorf("%s did not start; it says why above", program)
	}
	serviceURL, webURL = words[2], words[3]
	return run(), nil
}

// ask sends a request to the web port, and returns its answer.
func ask(t *testing.T, method, path, body string) string {
	t.Helper()
	request, err := http.NewRequest(method, webURL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %s %v", method, path, answer.Status, said, err)
	}
	return string(said)
}

// advance moves the broker's time ahead: "90s", "5m", "1h".
func advance(t *testing.T, time string) {
	t.Helper()
	ask(t, http.MethodPost, "/admin/v2/floodgate/clock", fmt.Sprintf(`{"advance": %q}`, time))
}

// newClient empties the broker and returns a client of it, which is closed when the test ends.
func newClient(t *testing.T) pulsar.Client {
	t.Helper()
	ask(t, http.MethodPost, "/admin/v2/floodgate/reset", "")
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: serviceURL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}
