package id

// Ref is the reference to a resource of a tenant: its tenant and its id.
type Ref struct {
	Tenant ID `json:"tenant"`
	ID     ID `json:"id"`
}
