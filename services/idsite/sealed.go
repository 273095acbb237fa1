package idsite

import (
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Sealed are the columns that a rotation of the master key re-encrypts (pkg/reseal). The values of
// provider_logins are not among them, because they expire within minutes.
var Sealed = []secure.SealedColumn[id.ID]{
	{Table: "id_sites", Key: "tenant_id", Column: "tls_private_key_sealed", Purpose: tlsKeyPurpose},
	{Table: "id_sites", Key: "tenant_id", Column: "git_credential_sealed", Purpose: gitCredentialPurpose},
}
