package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/mfa"
	"github.com/doorward/doorward/services/mfa/store"
)

type factorView struct {
	rest.Head
	Type               string `json:"type"`
	Status             string `json:"status"`
	VerificationStatus string `json:"verificationStatus"`
	*authenticatorView
	Account    href.Link  `json:"account"`
	Challenges href.Link  `json:"challenges"`
	Phone      *href.Link `json:"phone,omitempty"` // of an SMS factor
	MostRecent *href.Link `json:"mostRecentChallenge"`
}

// authenticatorView has the members that only an authenticator has.
type authenticatorView struct {
	AccountName   *string       `json:"accountName"`
	Issuer        *string       `json:"issuer"`
	Secret        secure.Secret `json:"secret"`
	KeyURI        secure.Secret `json:"keyUri"`
	Base64QRImage []byte        `json:"base64QRImage"`
}

func (v views) factor(f store.Factor) factorView {
	view := factorView{
		Head: rest.NewHead(v.base.To("factors", f.ID), f.CreatedAt, f.ModifiedAt),
		Type: f.Type, Status: f.Status, VerificationStatus: f.VerificationStatus,
		Account: v.base.Link("accounts", f.AccountID), Challenges: v.base.Link("factors", f.ID, "challenges"),
		Phone: v.base.OptionalLink("phones", f.PhoneID), MostRecent: v.base.OptionalLink("challenges", f.ChallengeID),
	}
	if f.Type == store.Authenticator {
		view.authenticatorView = &authenticatorView{AccountName: f.AccountName, Issuer: f.Issuer, Secret: f.Secret,
			KeyURI:        f.KeyURI,
			Base64QRImage: f.Image}
	}
	return view
}

// createFactor answers POST /accounts/{id}/factors, with ?challenge=true also for a challenge.
func createFactor(svc *mfa.Service, v views) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, in, err := rest.RefAndBody[mfa.NewFactor, factorView](c)
		if err != nil {
			return err
		}
		if in.WithChallenge, err = rest.Flag(c, "challenge", false); err != nil {
			return err
		}
		f, err := svc.CreateFactor(c.UserContext(), at, in)
		if err != nil {
			return err
		}
		return rest.Created(c, v.base.To("factors", f.ID), v.factor(f))
	}
}
