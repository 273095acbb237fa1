package application

import (
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Sealed lists the columns that are encrypted under the master key, for the rotation of that
// key (pkg/reseal/reseal.go).
var Sealed = []secure.SealedColumn[id.ID]{
	{Table: "saml_identity_providers", Key: "id", Column: "private_key_sealed", Purpose: samlKeyPurpose},
	{Table: "saml_relay_keys", Key: "tenant_id", Column: "key_sealed", Purpose: relayKeyPurpose},
}
