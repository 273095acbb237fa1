package id

// Ref names a resource of a tenant.
type Ref struct {
	Tenant ID `json:"tenant"`
	ID     ID `json:"id"`
}
