package directory

import (
	"slices"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/store"
)

// claim is an entry that wants names of its directory.
type claim struct {
	id    id.ID    // of its account or group
	held  []string // that it has
	names []string // that it is to have
}

// turn is in which order claims get names: what one has it keeps, and an entry
// that is there goes before a new one.
type turn int

const (
	keeps turn = iota
	moves
	comes
)

func (c claim) turn(name string) turn {
	switch {
	case slices.Contains(c.held, name):
		return keeps
	case c.held != nil:
		return moves
	}
	return comes
}

// clashes returns which of the claims cannot have their names, with the name that
// another has. A claim that is refused keeps the names that it has. owned are the
// names that are taken now.
func clashes(claims []claim, owned []store.Owned) (refused map[int]string, releasing []id.ID) {
	refused = map[int]string{}
	for {
		active := map[id.ID]bool{}
		for i, c := range claims {
			if _, no := refused[i]; !no {
				active[c.id] = true
			}
		}
		taken := map[string]id.ID{}
		for _, o := range owned {
			if !active[o.ID] {
				taken[o.Name] = o.ID
			}
		}
		before := len(refused)
		for _, turn := range []turn{keeps, moves, comes} {
			for i, c := range claims {
				for _, name := range c.names {
					if _, no := refused[i]; no || c.turn(name) != turn {
						continue
					}
					if other, clash := taken[name]; clash && other != c.id {
						refused[i] = name
						continue
					}
					taken[name] = c.id
				}
			}
		}
		if len(refused) > before {
			continue
		}
		for _, o := range owned {
			if active[o.ID] && taken[o.Name] != o.ID {
				releasing = append(releasing, o.ID)
			}
		}
		return refused, releasing
	}
}
