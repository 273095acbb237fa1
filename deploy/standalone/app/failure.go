package app

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

// ErrUsage is in the error of a command that was called wrongly, whose exit status is 2.
var ErrUsage = errors.New("usage")

// UsageError is an error with ErrUsage that says only what is wrong.
type UsageError string

func (e UsageError) Error() string { return string(e) }

// Is reports whether target is ErrUsage, for errors.Is.
func (e UsageError) Is(target error) bool { return target == ErrUsage }

// IsUsage reports whether a command failed because of how it was called, or of the variables of the environment.
func IsUsage(err error) bool { return errors.Is(err, ErrUsage) || errors.Is(err, env.ErrIncomplete) }

// IsUnreachable reports whether a command failed because PostgreSQL or Kafka cannot be reached. No command has a
// deadline of its own, so that one that has passed is a server's.
func IsUnreachable(err error) bool {
	_, network := errors.AsType[*net.OpError](err)
	_, lookup := errors.AsType[*net.DNSError](err)
	return network || lookup || errors.Is(err, context.DeadlineExceeded) || pg.IsUnreachable(err)
}

// parseMasterKey reads DOORWARD_MASTER_KEY.
func parseMasterKey(key secure.Secret) (*secure.Keyring, error) {
	ring, err := secure.ParseKeyring(key)
	if err != nil {
		return nil, UsageError(fmt.Sprintf("DOORWARD_MASTER_KEY: %v", err))
	}
	return ring, nil
}
