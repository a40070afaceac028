// Runs scenarios with the official Go client, one JSON line for each:
//
//	driver SERVICE_URL ADMIN_URL NAMESPACE FOLDER [SCENARIO ...]
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"
)

const atOnce = 8

var scenarios = map[string]func(*Place) Result{
	"plain": plain, "ordering_key": orderingKey, "batched": batched, "compressed": compressed,
	"chunked": chunked, "access_modes": accessModes, "producer_names": producerNames,
	"encrypted": encrypted, "partitioned": partitioned, "non_persistent": nonPersistent,
	"transactions": transactions, "exclusive": exclusive, "failover": failover, "shared": shared,
	"key_shared": keyShared, "regex": regex, "many_topics": manyTopics, "nack": nack,
	"dead_letter": deadLetter, "batch_index": batchIndex, "delayed": delayed,
	"unsubscribe": unsubscribe, "reader": reader, "reader_at": readerAt,
	"batched_reader": batchedReader, "seek_id": seekID, "seek_time": seekTime, "last_id": lastID,
	"table_view": tableView, "schema_string": schemaString, "schema_json": schemaJSON,
	"schema_avro": schemaAvro, "schema_deleted": schemaDeleted, "missing_topic": missingTopic,
	"http_lookup": httpLookup, "deduplicated": deduplicated, "compacted": compacted,
	"restart": restart,
}

func run(place *Place) (line Result) {
	started := time.Now()
	line = Result{"scenario": place.name}
	defer func() {
		if problem := recover(); problem != nil {
			line["error"] = fmt.Sprint(problem)
			line["trace"] = fmt.Sprint(problem, "\n", string(debug.Stack()))
		}
		place.close()
		line["seconds"] = time.Since(started).Seconds()
	}()
	line["result"] = scenarios[place.name](place)
	return line
}

func main() {
	names := os.Args[5:]
	if len(names) == 0 {
		for name := range scenarios {
			if name != "restart" {
				names = append(names, name)
			}
		}
	}
	logTo := must(os.Create(filepath.Join(os.Args[4], "client.log")))
	var writing sync.Mutex
	var all sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for _, name := range names {
		all.Add(1)
		go func() {
			defer all.Done()
			places <- struct{}{}
			line := run(&Place{
				serviceURL: os.Args[1], adminURL: os.Args[2], namespace: os.Args[3],
				folder: os.Args[4], name: name, logTo: logTo,
			})
			<-places
			writing.Lock()
			defer writing.Unlock()
			check(json.NewEncoder(os.Stdout).Encode(line))
		}()
	}
	all.Wait()
}
