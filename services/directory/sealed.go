package directory

import (
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Sealed are the columns whose values are sealed under the master key (encryption at rest). The
// rotation of that key reseals them (pkg/reseal).
var Sealed = []secure.SealedColumn[id.ID]{
	{Table: "accounts", Key: "id", Column: "verification_sealed", Purpose: events.MailTokenPurpose},
	{Table: "tenants", Key: "tenant_id", Column: "reset_key_sealed", Purpose: resetKeyPurpose},
	{Table: "providers", Key: "directory_id", Column: "client_secret_sealed", Purpose: clientSecretPurpose},
	{Table: "agents", Key: "id", Column: "password_sealed", Purpose: agentPasswordPurpose},
	{Table: "saml_service_providers", Key: "id", Column: "private_key_sealed", Purpose: samlKeyPurpose},
	{Table: "provider_data", Key: "account_id", Column: "tokens_sealed", Purpose: providerTokensPurpose},
}
