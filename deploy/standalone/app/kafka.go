package app

import (
	"fmt"

	"github.com/doorward/doorward/deploy/standalone/privateserver"
	"github.com/doorward/doorward/pkg/env"
)

// brokerFile is the file of the data folder that says how the commands of doorward
// reach the embedded broker while the process runs.
const brokerFile = "broker.json"

// broker is the content of brokerFile.
type broker struct {
	Address  string `json:"address"`
	Password string `json:"password"`
}

// setVariables makes the broker the Kafka of the source.
func (b broker) setVariables(source *env.Source) {
	source.SetDefault("KAFKA_BROKERS", b.Address)
	source.SetDefault("KAFKA_USERNAME", privateserver.KafkaUsername)
	source.SetDefault("KAFKA_PASSWORD", b.Password)
	source.SetDefault("KAFKA_SASL_MECHANISM", privateserver.KafkaMechanism)
}

// resolveBroker sets the variables KAFKA_… of the source: unless the environment names
// brokers, to the embedded broker of the standalone process that runs on the data folder.
func resolveBroker(source *env.Source) error {
	if source.Has("KAFKA_BROKERS") {
		return nil
	}
	var cfg Config
	source.Load(&cfg)
	var private broker
	data := folder{path: cfg.DataDir}
	exists, err := data.readJSON(brokerFile, &private)
	if err != nil {
		return err
	}
	if !exists || namesADatabase(source) { // of another deployment
		return UsageError(fmt.Sprintf(
			"KAFKA_BROKERS is missing, and no standalone with a broker of its own runs on %s; set it, or DOORWARD_DATA_DIR", cfg.DataDir))
	}
	private.setVariables(source)
	return nil
}
