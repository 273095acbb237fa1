package rest

import (
	"encoding/json"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
)

type factorInput struct {
	Type  string `json:"type"`
	Phone struct {
		Number string `json:"number"`
	} `json:"phone"`
	AccountName *string       `json:"accountName"`
	Issuer      *string       `json:"issuer"`
	Secret      secure.Secret `json:"secret"`
	State       secure.Secret `json:"state"`
	Code        string        `json:"code"`
	Factor      string        `json:"factor"`
}

func readFactor(f *fiber.Ctx) (in factorInput, err error) {
	members, err := readInput(f)
	if err != nil {
		return in, err
	}
	body, err := json.Marshal(members)
	if err == nil && json.Unmarshal(body, &in) != nil {
		err = apierr.WrongType.Because("a member of the body has the wrong type")
	}
	return in, err
}

// enrollFactor answers POST /factors: it creates a factor in a login or for a logged-in user.
func (c *clientCall) enrollFactor(f *fiber.Ctx) error {
	in, err := readFactor(f)
	if err != nil {
		return err
	}
	if in.Secret != "" {
		// Ignoring it would enroll another secret than the one that the user's device has.
		return apierr.UnusedProperty.Saying("The secret of a new factor is made here; it cannot be given.")
	}
	made, err := c.EnrollFactor(f.UserContext(), mfaapi.EnrollFactor{
		State: in.State, Type: in.Type, Number: in.Phone.Number, AccountName: in.AccountName, Issuer: in.Issuer,
		Challenge: strings.EqualFold(f.Query("challenge"), "true"),
	}, c.presented(f))
	if err != nil {
		return err
	}
	out := fiber.Map{"state": made.State.Reveal()}
	if made.Secret != "" {
		out["secret"], out["keyUri"], out["base64QRImage"] = made.Secret.Reveal(), made.KeyURI.Reveal(), made.QRImage.Reveal()
	}
	return f.JSON(out)
}

// challengeFactor answers POST /challenges: it creates a challenge, or answers it with a code.
func (c *clientCall) challengeFactor(f *fiber.Ctx) error {
	in, err := readFactor(f)
	if err != nil {
		return err
	}
	asked := mfaapi.ChallengeFactor{State: in.State, Code: in.Code}
	if ref, ok := c.base.Parse(in.Factor); ok && ref.Kind == "factors" {
		asked.Factor = ref.ID
	}
	challenged, err := c.ChallengeFactor(f.UserContext(), asked, c.presented(f))
	if err != nil {
		return err
	}
	return f.JSON(fiber.Map{"state": challenged.State.Reveal(), "status": challenged.Status})
}
