// Package clienttests shows a broker for the tests of a Pulsar client: one for all of them, a
// namespace for each. FLOODGATE_BROKER names the program if floodgate-broker is not on the path.
package clienttests

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

var serviceURL, adminURL string

func TestMain(m *testing.M) {
	program := os.Getenv("FLOODGATE_BROKER")
	if program == "" {
		program = "floodgate-broker"
	}
	command := exec.Command(program,
		"--set", "brokerServicePort=0", "--set", "webServicePort=0", // any free ones
		"--set", "bindAddress=127.0.0.1", "--set", "advertisedAddress=127.0.0.1",
		"--set", "forceDeleteNamespaceAllowed=true")
	output, err := command.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := command.Start(); err != nil {
		panic(err)
	}
	// The broker's first line: READY broker pulsar://host:port http://host:port
	line, _ := bufio.NewReader(output).ReadString('\n')
	words := strings.Fields(line)
	code := 1
	if len(words) == 4 && words[0] == "READY" {
		serviceURL, adminURL = words[2], words[3]
		code = m.Run()
	}
	_ = command.Process.Signal(syscall.SIGTERM)
	_ = command.Wait()
	os.Exit(code)
}

func admin(t *testing.T, method, path string) {
	t.Helper()
	request, err := http.NewRequest(method, adminURL+"/admin/v2/"+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		t.Fatalf("%s %s: %s", method, path, answer.Status)
	}
}

// newNamespace makes a namespace for one test; all in it is gone afterwards.
func newNamespace(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("public/test-%d", time.Now().UnixNano())
	admin(t, http.MethodPut, "namespaces/"+name)
	t.Cleanup(func() { admin(t, http.MethodDelete, "namespaces/"+name+"?force=true") })
	return name
}

func newClient(t *testing.T) pulsar.Client {
	t.Helper()
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: serviceURL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}
