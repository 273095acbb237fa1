// Package requestpath reads the path of a request in one way only, so that a service cannot take it for another
// (path traversal).
package requestpath

import "bytes"

// Normalize appends the normalized path to dst: one slash between segments, none at the
// end. Escapes stay as they are. ok is false for a path that a service could take for another path
// (path traversal): with a dot segment, an escaped slash, a backslash, a control character or an
// invalid escape.
func Normalize(dst, path []byte) (normalized []byte, ok bool) {
	start := len(dst)
	for len(path) > 0 {
		segment, rest, _ := bytes.Cut(path, []byte{'/'})
		path = rest
		if len(segment) == 0 {
			continue
		}
		if !isUnambiguous(segment) {
			return dst, false
		}
		dst = append(append(dst, '/'), segment...)
	}
	if len(dst) == start {
		dst = append(dst, '/')
	}
	return dst, true
}

// isUnambiguous reports whether every server reads a segment in the same way.
func isUnambiguous(segment []byte) bool {
	dots := 0
	for i := 0; i < len(segment); i++ {
		b := segment[i]
		if b == '%' {
			if i+2 >= len(segment) {
				return false
			}
			high, low := unhex(segment[i+1]), unhex(segment[i+2])
			if high > 15 || low > 15 {
				return false
			}
			b, i = high<<4|low, i+2
		}
		switch {
		case b < ' ' || b == 0x7f || b == '/' || b == '\\':
			return false
		case b == '.' && dots >= 0:
			dots++
		default:
			dots = -1
		}
	}
	return dots != 1 && dots != 2
}

func unhex(b byte) byte {
	switch {
	case '0' <= b && b <= '9':
		return b - '0'
	case 'a' <= b && b <= 'f':
		return b - 'a' + 10
	case 'A' <= b && b <= 'F':
		return b - 'A' + 10
	}
	return 0xff
}

// OriginForm returns a request target in origin form: it removes the scheme and the host of a
// target in absolute form (RFC 9112, section 3.2.2). ok is false for a target in another form, or
// with invalid characters.
func OriginForm(target []byte) (path []byte, ok bool) {
	for _, b := range target {
		if b <= ' ' || b == 0x7f || b == '#' {
			return nil, false
		}
	}
	if len(target) > 0 && target[0] == '/' {
		return target, true
	}
	for _, scheme := range []string{"https://", "http://"} {
		if len(target) > len(scheme) && bytes.EqualFold(target[:len(scheme)], []byte(scheme)) {
			rest := target[len(scheme):]
			if slash := bytes.IndexByte(rest, '/'); slash > 0 && bytes.IndexByte(rest[:slash], '?') < 0 {
				return rest[slash:], true
			}
		}
	}
	return nil, false
}

// IsManagement reports whether a path belongs to the management API.
func IsManagement(path []byte) bool {
	rest, ok := bytes.CutPrefix(path, []byte("/v1"))
	return ok && (len(rest) == 0 || rest[0] == '/')
}
