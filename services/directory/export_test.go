package directory

// SealedColumns is how many columns a new master key seals again.
var SealedColumns = len(sealed)
