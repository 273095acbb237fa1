package mailbox

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset" // Decodes every charset that mail is written in.
)

// maxDepth and maxParts bound the cost of a hostile MIME structure: each level of nesting reads
// every byte below it once more.
const (
	maxDepth = 10
	maxParts = 200
)

// errStopWalk ends a walk through the parts of a message.
var errStopWalk = errors.New("enough of the message read")

// content is the subject and the bodies of a mail, decoded to UTF-8. A field that is absent,
// or cannot be parsed, is empty.
type content struct {
	subject    string
	text, html string
	hasText    bool
	hasHTML    bool
	parts      int // that were visited
}

// readContent parses a message. It never fails: it returns the parts that can be parsed.
func readContent(raw []byte) content {
	entity, _ := message.Read(bytes.NewReader(raw)) // An unknown charset comes with an entity that can be read.
	if entity == nil {
		return content{}
	}
	subject, _ := entity.Header.Text("Subject") // as it was written when it cannot be decoded
	c := content{subject: strings.ToValidUTF8(subject, "\uFFFD")}
	_ = entity.Walk(c.visit)
	return c
}

// visit keeps the first inline part of the types text/plain and text/html.
func (c *content) visit(path []int, part *message.Entity, _ error) error {
	c.parts++
	if len(path) > maxDepth || c.parts > maxParts {
		return errStopWalk
	}
	if disposition, _, _ := part.Header.ContentDisposition(); strings.EqualFold(disposition, "attachment") {
		return nil
	}
	contentType, _, _ := part.Header.ContentType()
	mediaType, _, _ := strings.Cut(contentType, ";") // It comes whole when its parameters are broken.
	mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	switch {
	case mediaType == "text/plain" && !c.hasText:
		c.text, c.hasText = body(part), true
	case mediaType == "text/html" && !c.hasHTML:
		c.html, c.hasHTML = body(part), true
	}
	if c.hasText && c.hasHTML {
		return errStopWalk
	}
	return nil
}

// body reads a part up to its end or to the first byte that cannot be decoded.
func body(part *message.Entity) string {
	b, _ := io.ReadAll(part.Body)
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
