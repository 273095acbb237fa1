package pg

// MaxNamed is how many resources a transaction names in its notifications.
const MaxNamed = maxNamed

// Writes returns how many writes the worker of Analyze knows of.
func Writes(db *DB) int64 { return db.writes.Load() }
