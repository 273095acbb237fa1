package rest

import "github.com/gofiber/fiber/v2"

// ProofHeader is the header with a proof of possession of a key (DPoP; RFC 9449, section 4.1).
const ProofHeader = "DPoP"

// Proofs returns the proofs of possession of a request, of which one is allowed.
func Proofs(c *fiber.Ctx) (all []string) {
	for _, proof := range c.Request().Header.PeekAll(ProofHeader) {
		all = append(all, string(proof))
	}
	return all
}
