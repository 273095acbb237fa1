package caller

import "github.com/doorward/doorward/pkg/id"

// ClientHeader is the header of a service's answer that names the client of an OpenID provider which the request has
// authenticated, or whose access token it has sent. The gateway keeps it from the client, and counts the next requests
// with the same credential for that client (gateway/clientlimit.go).
const ClientHeader = "Doorward-Client"

// FormatClient returns the value of ClientHeader.
func FormatClient(client id.Ref) string {
	return encoding.EncodeToString(append(client.Tenant[:], client.ID[:]...))
}

// ParseClient returns the client that a value of ClientHeader names.
func ParseClient(header []byte) (client id.Ref, ok bool) {
	raw, err := encoding.DecodeString(string(header))
	if err != nil || len(raw) != 2*idSize {
		return client, false
	}
	return id.Ref{Tenant: id.ID(raw[:idSize]), ID: id.ID(raw[idSize:])}, true
}
