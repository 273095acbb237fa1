package idsite

import (
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Sealed are the columns of values that are sealed under the master key. Those of
// provider_logins live for minutes and are not among them.
var Sealed = []secure.SealedColumn[id.ID]{
	{Table: "id_sites", Key: "tenant_id", Column: "tls_private_key_sealed", Purpose: tlsKeyPurpose},
}
