package agent

import (
	"slices"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/store"
)

// nameRequest are the names that an entry of a sync needs in its directory: login names of an
// account, or the name of a group.
type nameRequest struct {
	id      id.ID    // of the account or group
	current []string // names that it has now; nil for a new entry
	wanted  []string // names that it needs after the sync
}

// precedence is the order in which requests for a name are granted: an entry keeps a name that it
// has, and an existing entry goes before a new one.
type precedence int

const (
	keepsName precedence = iota
	changesName
	isNewEntry
)

func (r nameRequest) precedence(name string) precedence {
	switch {
	case slices.Contains(r.current, name):
		return keepsName
	case r.current != nil:
		return changesName
	}
	return isNewEntry
}

// resolveNameConflicts returns which requests are refused, by their index, with a name that
// another entry has. holders are the entries that have the names now; a refused entry keeps its
// current names, and an absent holder gives its names to who needs them. releasing are the entries
// whose current names another request gets: they have to give them up first, as names are unique.
func resolveNameConflicts(requests []nameRequest,
	holders []store.NameHolder) (refused map[int]string, releasing []id.ID) {
	refused = map[int]string{}
	for {
		active := map[id.ID]bool{}
		for i, request := range requests {
			if _, isRefused := refused[i]; !isRefused {
				active[request.id] = true
			}
		}
		taken := map[string]id.ID{}
		for _, holder := range holders {
			if !active[holder.ID] && !holder.Absent {
				taken[holder.Name] = holder.ID
			}
		}
		before := len(refused)
		for _, current := range []precedence{keepsName, changesName, isNewEntry} {
			for i, request := range requests {
				for _, name := range request.wanted {
					if _, isRefused := refused[i]; isRefused || request.precedence(name) != current {
						continue
					}
					if other, clash := taken[name]; clash && other != request.id {
						refused[i] = name
						continue
					}
					taken[name] = request.id
				}
			}
		}
		if len(refused) > before {
			continue
		}
		for _, holder := range holders {
			next, isTaken := taken[holder.Name]
			if next != holder.ID && (active[holder.ID] || holder.Absent && isTaken) {
				releasing = append(releasing, holder.ID)
			}
		}
		return refused, releasing
	}
}
