package apierr

// Reasons that old clients compare, word for word (docs/interface/errors.md#body). They
// have capital letters and full stops, which no other reason has.
const (
	NoSuchAccountReason = "Login attempt failed because there is no Account in the Application's associated Account Stores " +
		"with the specified username or email."
	WrongPasswordReason = "Login attempt failed because the specified password is incorrect."
	NotMappedReason     = "The specified Account Store is not one of the Application's assigned Account Stores."
	OrgInsideOrgReason  = "An Organization cannot be mapped as an Account Store for another Organization."
	// TokenRevokedReason ends with the name of the product.
	TokenRevokedReason = "Token does not exist. This can occur if the token has been manually deleted, " +
		"or if the token has expired and removed by %s."
)
