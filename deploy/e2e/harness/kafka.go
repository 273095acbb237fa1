package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

// Kafka is one real broker that is its own controller (KRaft), on loopback,
// with its log in the shape's folder.
type Kafka struct {
	*Daemon

	// Address is the broker's host and port.
	Address string

	// Boot is how long formatting and the first start took.
	Boot time.Duration
}

// kafkaSettings is a broker for one machine: nothing is replicated, a new group
// is balanced at once, topics exist only because the product made them, and a
// broker that was killed is let in again after 4 s instead of 9.
const kafkaSettings = `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%[2]s
controller.listener.names=CONTROLLER
listeners=BROKER://%[1]s,CONTROLLER://%[2]s
advertised.listeners=BROKER://%[1]s
inter.broker.listener.name=BROKER
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=%[3]s
num.partitions=6
auto.create.topics.enable=false
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=4000
group.initial.rebalance.delay.ms=0
offsets.topic.replication.factor=1
offsets.topic.num.partitions=6
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
`

// kafkaListener is a listener of one process's own: where the broker listens, and
// where it says that it does.
type kafkaListener struct{ process, address, advertised string }

// addKafkaListeners adds them to the settings of a broker.
func addKafkaListeners(settings string, listeners []kafkaListener) string {
	if len(listeners) == 0 {
		return settings
	}
	var listen, advertised, protocols strings.Builder
	for _, l := range listeners {
		name := strings.ToUpper(strings.ReplaceAll(l.process, "-", ""))
		fmt.Fprintf(&listen, ",%s://%s", name, l.address)
		fmt.Fprintf(&advertised, ",%s://%s", name, l.advertised)
		fmt.Fprintf(&protocols, ",%s:PLAINTEXT", name)
	}
	lines := strings.Split(settings, "\n")
	for i, line := range lines {
		switch name, _, _ := strings.Cut(line, "="); name {
		case "listeners":
			lines[i] += listen.String()
		case "advertised.listeners":
			lines[i] += advertised.String()
		case "listener.security.protocol.map":
			lines[i] += protocols.String()
		}
	}
	return strings.Join(append(lines, "num.network.threads=1\n"), "\n")
}

// clusterID is 16 bytes in Base64, always the same, so that a folder can be
// formatted again without harm.
const clusterID = "ZG9vcndhcmQgZTJlIG9uZQ"

// startKafka starts the broker from the jars that deploy/setup/setup.sh has
// fetched.
func startKafka(ctx context.Context, config Config, listeners ...kafkaListener) (*Kafka, error) {
	began := time.Now()
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("%w; run deploy/setup/setup.sh kafka", err)
	}
	jars, err := kafkaJars()
	if err != nil {
		return nil, err
	}
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	controller, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	settings := config.path("kafka.properties")
	text := addKafkaListeners(fmt.Sprintf(kafkaSettings, address, controller, config.path("kafka")), listeners)
	if err := os.WriteFile(settings, []byte(text), 0o644); err != nil {
		return nil, fmt.Errorf("write the broker's settings: %w", err)
	}
	// Little memory, and compiled for a quick start rather than for a long run.
	flags := []string{
		"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-cp", filepath.Join(jars, "*"),
	}
	format := exec.CommandContext(ctx, java, append(slices.Clone(flags), "kafka.tools.StorageTool",
		"format", "--ignore-formatted", "--config", settings, "--cluster-id", clusterID)...)
	format.Env = environment()
	if out, err := format.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("format the broker's storage: %w\n%s", err, out)
	}
	broker := &Kafka{
		Address: address,
		Daemon: &Daemon{
			Name:  "kafka",
			path:  java,
			args:  append(flags, "kafka.Kafka", settings),
			env:   environment(),
			log:   config.path("kafka.log"),
			ready: func(ctx context.Context) error { return kafkaAnswers(ctx, address) },
		},
	}
	if err := broker.Start(ctx); err != nil {
		return nil, err
	}
	broker.Boot = time.Since(began)
	return broker, nil
}

// Stop takes the broker's own status for a stop on SIGTERM, 143, as a good end.
func (k *Kafka) Stop(ctx context.Context) error {
	err := k.Daemon.Stop(ctx)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 143 {
		return nil
	}
	return err
}

// kafkaAnswers asks the broker for the cluster: it is ready when it counts
// itself as a member and knows its controller.
func kafkaAnswers(ctx context.Context, address string) error {
	conn, err := kafka.DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("dial the broker: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return fmt.Errorf("dial the broker: %w", err)
	}
	brokers, err := conn.Brokers()
	if err != nil {
		return fmt.Errorf("ask the broker at %s for its cluster: %w", address, err)
	}
	controller, err := conn.Controller()
	if err != nil {
		return fmt.Errorf("ask the broker at %s for its controller: %w", address, err)
	}
	if len(brokers) == 0 || controller.Host == "" {
		return fmt.Errorf("the broker at %s knows no broker or no controller yet", address)
	}
	return nil
}

// kafkaJars is the folder of the newest broker that setup.sh has fetched.
func kafkaJars() (string, error) {
	tools := os.Getenv("DOORWARD_TOOLS")
	if tools == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the broker's jars: %w; set DOORWARD_TOOLS", err)
		}
		tools = filepath.Join(home, ".cache", "doorward")
	}
	found, err := filepath.Glob(filepath.Join(tools, "kafka-*", "libs"))
	if err != nil {
		return "", fmt.Errorf("find the broker's jars: %w", err)
	}
	if len(found) == 0 {
		return "", fmt.Errorf("no Kafka broker in %s; run deploy/setup/setup.sh kafka, or set KAFKA_BROKERS", tools)
	}
	slices.SortFunc(found, func(a, b string) int { return strings.Compare(a, b) })
	return found[len(found)-1], nil
}
