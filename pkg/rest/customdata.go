package rest

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
)

// CustomData adds the endpoints of the customData of one kind of parent resource, the owner
// (docs/interface/custom-data.md#endpoints). kind is the collection of the owners, such as
// "applications".
func CustomData(router fiber.Router, kind string, owners customdata.Store) {
	h := customDataHandlers{kind, owners}
	path := "/" + kind + "/:id/customData"
	router.Get(path, h.read)
	router.Post(path, h.merge)
	router.Delete(path, Delete(owners.Clear))
	router.Delete(path+"/:key", h.deleteKey)
}

type customDataHandlers struct {
	kind   string
	owners customdata.Store
}

func (h customDataHandlers) read(c *fiber.Ctx) error {
	owner, err := Ref(c)
	if err != nil {
		return err
	}
	r, err := h.owners.Read(c.UserContext(), owner)
	if err != nil {
		return err
	}
	body, err := renderCustomData(h.address(c, owner), r)
	if err != nil {
		return err
	}
	c.Response().SetBodyRaw(body)
	return respondOK(c)
}

func (h customDataHandlers) merge(c *fiber.Ctx) error {
	owner, err := Ref(c)
	if err != nil {
		return err
	}
	if err := checkContentType(c, fiber.MIMEApplicationJSON); err != nil {
		return err
	}
	in, err := customdata.Parse(c.Request().Body())
	if err != nil {
		return err
	}
	if c.UserContext().Err() != nil { // parsing took longer than requestTimeout
		return apierr.Unavailable.Because("the request took too long to read; send it again").
			WithRetryAfter(time.Second)
	}
	r, err := h.owners.Merge(c.UserContext(), owner, in)
	if err != nil {
		return err
	}
	address := h.address(c, owner)
	c.Set(fiber.HeaderLocation, address)
	body, err := renderCustomData(address, r)
	if err != nil {
		return err
	}
	c.Response().SetBodyRaw(body)
	return setJSONHeaders(c, fiber.StatusOK)
}

func (h customDataHandlers) deleteKey(c *fiber.Ctx) error {
	key, err := url.PathUnescape(c.Params("key"))
	if err != nil {
		return apierr.NotFound
	}
	return Delete(func(ctx context.Context, owner id.Ref) error { return h.owners.DeleteKey(ctx, owner, key) })(c)
}

// address returns the URL of the customData of an owner.
func (h customDataHandlers) address(c *fiber.Ctx, owner id.Ref) string {
	base, _ := c.Locals(baseKey{}).(href.Base)
	return base.To(h.kind, owner.ID, "customData")
}

// renderCustomData returns the representation: href, createdAt and modifiedAt, and then the
// members of the document as they are stored, without decoding them.
func renderCustomData(address string, r customdata.Resource) ([]byte, error) {
	head, err := json.Marshal(Head{Href: address, CreatedAt: Time(r.CreatedAt), ModifiedAt: Time(r.ModifiedAt)})
	if err != nil || r.Document.IsEmpty() {
		return head, err
	}
	body := make([]byte, 0, len(head)+len(r.Document))
	body = append(append(body, head[:len(head)-1]...), ',')
	return append(body, r.Document[1:]...), nil
}
