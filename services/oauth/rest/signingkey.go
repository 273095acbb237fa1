package rest

import (
	"encoding/json"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/oauth/signing"
	"github.com/doorward/doorward/services/oauth/store"
)

// signingKeyView is the representation of a signing key
// (docs/interface/openid.md#keys).
type signingKeyView struct {
	rest.Head
	Algorithm string          `json:"algorithm"`
	Status    string          `json:"status"`
	KID       string          `json:"kid"`
	JWK       json.RawMessage `json:"jwk"`
	ActiveAt  *rest.Time      `json:"activeAt"`
	RetiredAt *rest.Time      `json:"retiredAt"`
	Tenant    href.Link       `json:"tenant"`
}

func (h *handlers) signingKeyView(k store.SigningKey) signingKeyView {
	return signingKeyView{
		Head:      rest.NewHead(h.base.Path("signingKeys", k.ID), k.CreatedAt, k.ModifiedAt),
		Algorithm: k.Algorithm, Status: k.Status, KID: k.ID, JWK: k.JWK, ActiveAt: optionalTime(k.ActiveAt),
		RetiredAt: optionalTime(k.RetiredAt),
		Tenant:    h.base.Link("tenants", k.TenantID),
	}
}

func optionalTime(t *time.Time) *rest.Time { return (*rest.Time)(t) }

// updateSigningKey changes the status of a key; force=true does not wait for caches of the key set.
func (h *handlers) updateSigningKey(c *fiber.Ctx) error {
	at, in, err := rest.RefAndBody[signing.KeyChange, signingKeyView](c)
	if err != nil {
		return err
	}
	force, err := rest.Flag(c, "force", false)
	if err != nil {
		return err
	}
	key, err := h.svc.OpenID.UpdateSigningKey(c.UserContext(), at, in, force)
	if err != nil {
		return err
	}
	view := h.signingKeyView(key)
	return rest.Updated(c, view.Href, view)
}

type openIDSettingsView struct {
	rest.Head
	SigningKeyRotation *string   `json:"signingKeyRotation"`
	Tenant             href.Link `json:"tenant"`
}

func (h *handlers) openIDSettingsView(v store.OpenIDSettings) openIDSettingsView {
	return openIDSettingsView{
		Head:               rest.NewHead(h.base.To("openIdSettings", v.TenantID), v.CreatedAt, v.ModifiedAt),
		SigningKeyRotation: v.SigningKeyRotation, Tenant: h.base.Link("tenants", v.TenantID),
	}
}
