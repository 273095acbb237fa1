package pg

// Writes returns how many writes the worker of Analyze knows of.
func Writes(db *DB) int64 { return db.writes.Load() }
