package outbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/segmentio/kafka-go"

	"github.com/doorward/doorward/pkg/secure"
)

// signatureHeader is the header of a Kafka message with the HMAC-SHA-256 of its topic and
// its envelope, in hexadecimal form.
const signatureHeader = "signature"

var (
	errNoSecret  = errors.New("DOORWARD_INTERNAL_SECRET, under which events are signed, is empty")
	errSignature = errors.New(
		"the message has no valid signature: it does not come from a process with this DOORWARD_INTERNAL_SECRET")
)

// signer signs and verifies messages with keys that are derived from the internal secret, so that
// write access to Kafka alone is not enough to publish an event.
//
// The first key signs, every key verifies.
type signer [][]byte

func newSigner(cfg Config) (signer, error) {
	if cfg.Secret == "" {
		return nil, errNoSecret
	}
	keys := signer{[]byte(secure.Derive(cfg.Secret, "events.signature"))}
	if cfg.Accepted != "" {
		keys = append(keys, []byte(secure.Derive(cfg.Accepted, "events.signature")))
	}
	return keys, nil
}

// computeSignature returns the HMAC. It includes the topic, so that a message is not valid in another
// topic.
func computeSignature(key []byte, topic string, envelope []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(topic + "\x00"))
	mac.Write(envelope)
	return mac.Sum(nil)
}

// signatureHeader returns the header with the signature of an envelope that is sent to a topic.
func (s signer) signatureHeader(topic string, envelope []byte) kafka.Header {
	return kafka.Header{Key: signatureHeader,
		Value: []byte(hex.EncodeToString(computeSignature(s[0], topic, envelope)))}
}

// verify returns errSignature for a message without a valid signature.
func (s signer) verify(message kafka.Message) error {
	for _, header := range message.Headers {
		if header.Key != signatureHeader {
			continue
		}
		signature, err := hex.DecodeString(string(header.Value))
		for _, key := range s {
			if err == nil && hmac.Equal(signature, computeSignature(key, message.Topic, message.Value)) {
				return nil
			}
		}
	}
	return errSignature
}
