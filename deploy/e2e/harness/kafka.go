package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

// brokerSettings are those of every broker, which is a controller too (KRaft): a new
// group is balanced at once, topics exist only when the product creates them, and a
// broker that was killed can join again after 4 s instead of 9.
const brokerSettings = `process.roles=broker,controller
controller.listener.names=CONTROLLER
inter.broker.listener.name=BROKER
auto.create.topics.enable=false
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=4000
group.initial.rebalance.delay.ms=0
`

// kafkaSettings are the settings of a deployment's single broker, without replication.
const kafkaSettings = `node.id=1
controller.quorum.voters=1@%[2]s
listeners=BROKER://%[1]s,CONTROLLER://%[2]s%[4]s
advertised.listeners=BROKER://%[1]s%[5]s
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT%[6]s
num.network.threads=%[7]d
log.dirs=%[3]s
num.partitions=6
offsets.topic.replication.factor=1
offsets.topic.num.partitions=6
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
`

// kafkaListener is the listener of the broker for one process: the address on which the broker
// listens, and the one that it advertises.
type kafkaListener struct{ process, address, advertised string }

// Broker is one process of Kafka, from the jars that deploy/setup/setup.sh has fetched.
type Broker struct {
	Name     string
	Dir      string   // of its settings and its log
	Settings string   // besides those of every broker
	Format   []string // further arguments of the command that formats its storage
	Memory   string   // such as 512m

	// The broker is ready when it answers at Address, knows so many Members of the cluster,
	// and their controller.
	Address string
	Dialer  kafka.Dialer
	Members int
}

// clusterID is 16 bytes in Base64, always the same, so that a folder can be
// formatted again without harm.
const clusterID = "ZG9vcndhcmQgZTJlIG9uZQ"

// Prepare writes the settings, formats the storage, and returns the process, which is not started.
func (b Broker) Prepare(ctx context.Context) (*Daemon, error) {
	java, err := Program("java", "kafka")
	if err != nil {
		return nil, err
	}
	jars, err := Fetched("kafka")
	if err != nil {
		return nil, err
	}
	settings := filepath.Join(b.Dir, b.Name+".properties")
	if err := os.WriteFile(settings, []byte(brokerSettings+b.Settings), 0o600); err != nil {
		return nil, fmt.Errorf("write the broker's settings: %w", err)
	}
	// Little memory, and compiled for a quick start rather than for a long run.
	flags := []string{
		"-Xmx" + b.Memory, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-cp", filepath.Join(jars, "*"),
	}
	format := exec.CommandContext(ctx, java, slices.Concat(flags, []string{"kafka.tools.StorageTool",
		"format", "--ignore-formatted", "--config", settings, "--cluster-id", clusterID}, b.Format)...)
	format.Env = environment()
	if out, err := format.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("format the broker's storage: %w\n%s", err, out)
	}
	broker := NewDaemon(b.Name, filepath.Join(b.Dir, b.Name+".log"), b.probe, java, append(flags, "kafka.Kafka", settings)...)
	broker.stopStatus = 143 // of Java
	return broker, nil
}

// startKafka starts the broker of a deployment, with its log in the deployment's folder. It
// returns the broker and its address.
func startKafka(ctx context.Context, config Config, listeners ...kafkaListener) (*Daemon, string, error) {
	address := FreeAddress()
	controller := FreeAddress()
	threads := 3 // of each listener, which is Kafka's default
	var listen, advertised, protocols string
	for _, l := range listeners {
		name := strings.ToUpper(strings.ReplaceAll(l.process, "-", ""))
		listen += "," + name + "://" + l.address
		advertised += "," + name + "://" + l.advertised
		protocols += "," + name + ":PLAINTEXT"
		threads = 1
	}
	daemon, err := Broker{
		Name: "kafka", Dir: config.Dir, Memory: "512m", Address: address, Members: 1,
		Settings: fmt.Sprintf(kafkaSettings, address, controller, config.path("kafka"), listen, advertised, protocols, threads),
	}.Prepare(ctx)
	if err != nil {
		return nil, "", err
	}
	return daemon, address, daemon.Start(ctx)
}

// probe is the readiness probe of the broker.
func (b Broker) probe(ctx context.Context) error {
	conn, err := b.Dialer.DialContext(ctx, "tcp", b.Address)
	if err != nil {
		return fmt.Errorf("dial the broker: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return fmt.Errorf("dial the broker: %w", err)
	}
	brokers, err := conn.Brokers()
	if err != nil {
		return fmt.Errorf("ask the broker at %s for its cluster: %w", b.Address, err)
	}
	controller, err := conn.Controller()
	if err != nil {
		return fmt.Errorf("ask the broker at %s for its controller: %w", b.Address, err)
	}
	if len(brokers) < b.Members || controller.Host == "" {
		return fmt.Errorf("the broker at %s knows %d of %d brokers, and the controller %q", b.Address, len(brokers), b.Members, controller.Host)
	}
	return nil
}
