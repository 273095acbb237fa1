package gateway

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/openapi"
)

// referenceFile is a file of the reference as it is sent.
type referenceFile struct {
	kind, tag     string
	plain, zipped []byte
}

// referencePages are the description of the interface and its reading form.
func referencePages() map[string]page {
	return map[string]page{
		"/openapi.json": (*Gateway).referencePage, "/openapi.yaml": (*Gateway).referencePage,
		"/docs": (*Gateway).referencePage, "/docs/:file": (*Gateway).referencePage,
	}
}

// makeReference writes all files of the reference, by path.
func makeReference(d openapi.Deployment) (map[string]referenceFile, error) {
	document, err := openapi.New(d)
	if err != nil {
		return nil, err
	}
	pages, err := document.Pages()
	if err != nil {
		return nil, err
	}
	files := map[string]referenceFile{}
	add := func(path, kind string, body []byte) error {
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		if _, err := w.Write(body); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		files[path] = referenceFile{kind: kind, tag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, plain: body,
			zipped: zipped.Bytes()}
		return nil
	}
	for name, file := range pages {
		if err := add(strings.TrimSuffix("/docs/"+name, "/"), file.Type, file.Body); err != nil {
			return nil, err
		}
	}
	asJSON, err := document.JSON()
	if err != nil {
		return nil, err
	}
	if err := add("/openapi.json", "application/json;charset=UTF-8", asJSON); err != nil {
		return nil, err
	}
	asYAML, err := document.YAML()
	if err != nil {
		return nil, err
	}
	return files, add("/openapi.yaml", "application/yaml;charset=UTF-8", asYAML)
}

// referencePage answers a file of the reference, or 304 to a client that has it.
func (g *Gateway) referencePage(x *exchange) error {
	files, err := g.reference()
	if err != nil {
		return err
	}
	file, found := files[strings.TrimSuffix(string(x.target[:x.path]), "/")]
	if !found {
		return apierr.NotFound.Because("the reference has no such page; begin at %s/docs", g.cfg.Common.Base.Host())
	}
	x.Set(fiber.HeaderContentType, file.kind)
	x.Set(fiber.HeaderETag, file.tag)
	x.Set(fiber.HeaderCacheControl, "no-cache")
	x.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	x.Set(fiber.HeaderReferrerPolicy, "same-origin")
	x.Set(fiber.HeaderContentSecurityPolicy, openapi.PagePolicy)
	x.Vary(fiber.HeaderAcceptEncoding)
	g.secureTransport(x)
	if x.Get(fiber.HeaderIfNoneMatch) == file.tag {
		return x.SendStatus(fiber.StatusNotModified)
	}
	if strings.Contains(x.Get(fiber.HeaderAcceptEncoding), "gzip") {
		x.Set(fiber.HeaderContentEncoding, "gzip")
		return x.Send(file.zipped)
	}
	return x.Send(file.plain)
}
