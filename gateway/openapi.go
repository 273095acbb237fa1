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

// referenceFile is a file of the API reference as it is sent.
type referenceFile struct {
	contentType, etag string
	plain, zipped     []byte
}

// referencePages are the routes of the OpenAPI description and of the API reference as HTML pages.
func referencePages() map[string]page {
	return map[string]page{
		"/openapi.json": (*Gateway).referencePage, "/openapi.yaml": (*Gateway).referencePage,
		"/docs": (*Gateway).referencePage, "/docs/:file": (*Gateway).referencePage,
	}
}

// makeReference makes the OpenAPI description and all pages of the API reference, by path. Their
// content is that of pkg/openapi.
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
	add := func(path, contentType string, body []byte) error {
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		if _, err := w.Write(body); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		files[path] = referenceFile{contentType: contentType,
			etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, plain: body,
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

// referencePage answers with a file of the API reference, or with 304 where the ETag matches.
func (g *Gateway) referencePage(rc *requestContext) error {
	files, err := g.reference()
	if err != nil {
		return err
	}
	file, found := files[strings.TrimSuffix(string(rc.target[:rc.pathLength]), "/")]
	if !found {
		return apierr.NotFound.Because("the reference has no such page; begin at %s/docs", g.cfg.Common.Base.Host())
	}
	rc.Set(fiber.HeaderContentType, file.contentType)
	rc.Set(fiber.HeaderETag, file.etag)
	rc.Set(fiber.HeaderCacheControl, "no-cache")
	rc.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	rc.Set(fiber.HeaderReferrerPolicy, "same-origin")
	rc.Set(fiber.HeaderContentSecurityPolicy, openapi.PagePolicy)
	rc.Vary(fiber.HeaderAcceptEncoding)
	g.setHSTS(rc)
	if rc.Get(fiber.HeaderIfNoneMatch) == file.etag {
		return rc.SendStatus(fiber.StatusNotModified)
	}
	if strings.Contains(rc.Get(fiber.HeaderAcceptEncoding), "gzip") {
		rc.Set(fiber.HeaderContentEncoding, "gzip")
		return rc.Send(file.zipped)
	}
	return rc.Send(file.plain)
}
