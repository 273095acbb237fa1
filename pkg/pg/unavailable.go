package pg

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/doorward/doorward/pkg/apierr"
)

// Code returns the SQLSTATE of an error of PostgreSQL, and an empty text for any other error.
func Code(err error) string {
	if failure, ok := errors.AsType[*pgconn.PgError](err); ok {
		return failure.Code
	}
	return ""
}

// Cause returns what PostgreSQL says of an error, with its SQLSTATE, for operators.
func Cause(err error) string {
	if failure, ok := errors.AsType[*pgconn.PgError](err); ok {
		return fmt.Sprintf("%s (%s)", failure.Message, failure.Code)
	}
	return err.Error()
}

// codesThatStay are the SQLSTATEs of a connection that waiting does not mend: a wrong password, no such
// user, no such database, a privilege that lacks.
var codesThatStay = map[string]bool{"28P01": true, "28000": true, "3D000": true, "42501": true}

// MayRecover reports whether an error of Open may end by itself, as while PostgreSQL is away, is a standby or
// has no space left. One of TLS, or of a pooler, does not: DATABASE_URL has to be changed.
func MayRecover(err error) bool {
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	if certificate || errors.Is(err, errPoolerSession) ||
		strings.Contains(err.Error(), "server refused TLS connection") {
		return false
	}
	return errors.Is(Error(err), apierr.Unavailable) && !codesThatStay[Code(err)]
}

// IsUnreachable reports whether an error is of a connection to PostgreSQL that could not be made, while it is away or
// starts. One that it has refused, such as for a wrong password, is none.
func IsUnreachable(err error) bool {
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	return connecting && MayRecover(err)
}

// causes are what clients are told of a failure of the database, by its SQLSTATE or the class of that.
var causes = []struct{ code, text string }{
	{"25006", "the database is read-only"},
	{"53100", "the database has no space left on its disk"},
	{"53200", "the database is out of memory"},
	{"53", "the database has no connection left"},
	{"58P01", "the database server lacks one of its files, as after an update of its package"},
	{"57014", "the database took longer than it may"},
	{"55P03", "the database waited too long for a lock"},
	{"40", "the database had too many changes of the same rows at once"},
	{"57P", "the database is starting, stopping or recovering"},
}

// unavailableReason says to a client why the database did not do what it asked for.
func unavailableReason(code string) string {
	for _, c := range causes {
		if code != "" && strings.HasPrefix(code, c.code) {
			return fmt.Sprintf("%s (SQLSTATE %s); repeat the request later", c.text, code)
		}
	}
	if code != "" && !codesThatStay[code] {
		return fmt.Sprintf("the database cannot be reached (SQLSTATE %s); repeat the request later", code)
	}
	return "the database cannot be reached; repeat the request later"
}
