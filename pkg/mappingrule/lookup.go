package mappingrule

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Lookup returns the value at a path in the user object of a provider. The path is a key, or keys
// joined by dots, each followed by indexes of arrays, such as data.id or items[0].user_id. Objects
// are map[string]any, as encoding/json decodes them.
func Lookup(object any, path string) (value any, found bool) {
	if members, ok := object.(map[string]any); ok {
		if value, found = members[path]; found {
			return value, value != nil
		}
	}
	value = object
	for step := range strings.SplitSeq(path, ".") {
		key, positions, _ := strings.Cut(step, "[")
		members, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		value = members[key]
		for position := range strings.SplitSeq(positions, "[") {
			if position == "" {
				continue
			}
			at, err := strconv.Atoi(strings.TrimSuffix(position, "]"))
			list, ok := value.([]any)
			if err != nil || !ok || at < 0 || at >= len(list) {
				return nil, false
			}
			value = list[at]
		}
	}
	return value, value != nil
}

// Text returns a value of a user object as text: a string, or a number or a boolean as in JSON.
func Text(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, v != ""
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}
