package gateway

import "bytes"

// spell appends the normal spelling of a path to dst: one slash between
// segments, none at the end. Escapes stay as they are. It reports false for a
// path that could be taken for another one further on: with a dot segment, or
// with an escaped slash, backslash, control character or broken escape.
func spell(dst, path []byte) ([]byte, bool) {
	start := len(dst)
	for len(path) > 0 {
		segment, rest, _ := bytes.Cut(path, []byte{'/'})
		path = rest
		if len(segment) == 0 {
			continue
		}
		if !plain(segment) {
			return dst, false
		}
		dst = append(append(dst, '/'), segment...)
	}
	if len(dst) == start {
		dst = append(dst, '/')
	}
	return dst, true
}

// plain reports whether a segment means the same to every reader.
func plain(segment []byte) bool {
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

// origin cuts the scheme and the host off a request target in absolute form
// (RFC 9112, section 3.2.2). It reports false for a target that is neither
// that nor a path, or that holds what no target may.
func origin(target []byte) ([]byte, bool) {
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

// underV1 reports whether a path belongs to the management API.
func underV1(path []byte) bool {
	rest, ok := bytes.CutPrefix(path, []byte("/v1"))
	return ok && (len(rest) == 0 || rest[0] == '/')
}
