package field

// dangerousSchemes make a browser or a mail program run or read something instead
// of going somewhere.
var dangerousSchemes = map[string]bool{
	"about": true, "blob": true, "data": true, "file": true, "filesystem": true, "javascript": true, "vbscript": true, "view-source": true,
}

// IsDangerousScheme reports whether no link may have the scheme, in lower case.
func IsDangerousScheme(scheme string) bool { return dangerousSchemes[scheme] }
