package harness

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/doorward/doorward/pkg/redisclient"
)

func stopWell(t *testing.T, daemon interface{ Stop(context.Context) error }) {
	t.Helper()
	if err := daemon.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestRedisAnswersAndComesBackAtItsAddress(t *testing.T) {
	server, address, err := startRedis(t.Context(), Config{Dir: TestFolder(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopWell(t, server) })
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := InRedis(address, func(client redisclient.Client) error { return client.Ping(t.Context()).Err() }); err == nil {
		t.Fatal("a killed server answers")
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestKafkaKeepsItsMessagesOverAKill(t *testing.T) {
	began := time.Now()
	broker, address, err := startKafka(t.Context(), Config{Dir: TestFolder(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopWell(t, broker) })
	t.Logf("Kafka was ready after %s", time.Since(began))

	client := kafka.Client{Addr: kafka.TCP(address)}
	created, err := client.CreateTopics(t.Context(), &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: "kept", NumPartitions: 1, ReplicationFactor: 1}},
	})
	if err != nil || created.Errors["kept"] != nil {
		t.Fatal(err, created)
	}
	// A writer tries again until the broker leads the new partition.
	writer := &kafka.Writer{Addr: client.Addr, Topic: "kept", BatchTimeout: time.Millisecond, RequiredAcks: kafka.RequireAll}
	defer func() { _ = writer.Close() }()
	if err := writer.WriteMessages(t.Context(), kafka.Message{Value: []byte("still here")}); err != nil {
		t.Fatal(err)
	}
	if err := broker.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	if err := broker.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("after kill -9 it was ready again after %s", time.Since(killed))
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{address}, Topic: "kept", MaxWait: 100 * time.Millisecond})
	defer reader.Close()
	message, err := reader.ReadMessage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if string(message.Value) != "still here" {
		t.Errorf("after the kill the message is %q", message.Value)
	}
}

func TestAProcessThatEndsIsNotWaitedFor(t *testing.T) {
	config := Config{Dir: TestFolder(t)}
	short := &Daemon{
		Name:  "short",
		path:  "/bin/sh",
		args:  []string{"-c", "echo out of order; exit 3"},
		log:   config.path("short.log"),
		ready: func(context.Context) error { return os.ErrDeadlineExceeded },
	}
	err := short.Start(t.Context())
	if err == nil {
		t.Fatal("a process that ended counts as ready")
	}
	for _, part := range []string{"short to be ready", "exit status 3", "out of order"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}

func TestAPortIsHandedOutOnce(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		port := FreePort()
		if seen[port] {
			t.Fatalf("the port %d was handed out twice", port)
		}
		seen[port] = true
	}
}
