package rest

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/rpc"
)

// Contract serves the methods of a service's contract to other services: it mounts POST
// /internal/<method> on a router (package rpc).
func Contract(router fiber.Router) rpc.Router { return contract{router} }

type contract struct{ fiber.Router }

func (r contract) Handle(method string, answer func(context.Context, []byte) (any, error)) {
	r.Post(rpc.Prefix+method, func(c *fiber.Ctx) error {
		out, err := answer(c.UserContext(), c.Body())
		if err != nil {
			return err
		}
		var body bytes.Buffer
		encoder := json.NewEncoder(&body)
		encoder.SetEscapeHTML(false) // JSON that is passed on stays as it was sent
		if err := encoder.Encode(out); err != nil {
			return err
		}
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
		return c.Send(body.Bytes())
	})
}
