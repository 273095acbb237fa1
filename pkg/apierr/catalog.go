package apierr

import "net/http"

// Messages for end users that several errors share.
const (
	apology         = "Sorry, that did not work. Please check what was entered and try again."
	wrongLogin      = "Invalid username or password."          // a literal that clients compare
	notThere        = "The requested resource does not exist." // a literal that clients compare
	noNewAccounts   = "No new accounts can be created here at present. Please contact support."
	noNewGroups     = "No new groups can be created here at present. Please contact support."
	alreadyMapped   = "This account store is used here already."
	notAccountStore = "New accounts cannot be stored there. Please choose another account store."
	notGroupStore   = "New groups cannot be stored there. Please choose a directory."
	typeMapped      = "A directory of that provider is used here already."
	sourceAway      = "Your organization's directory cannot be reached at the moment. Please try again later."
	sourceSlow      = "Your organization's directory takes too long to answer. Please try again in a moment."
	sourceBroken    = "Your organization's directory sent an answer that cannot be used. Please contact your " +
		"administrator."
)

// fixedMessages are developer messages, by code, that clients compare whatever the reason is: the
// reason is for the log.
var fixedMessages = map[int]string{
	404:   notThere,
	10017: "Token is invalid because verifying the signature of a JWT failed.",
	10019: "API Key Authentication failed because the API key or secret submitted is invalid.",
}

// comparedMessages are developer messages, by code, whose literals clients compare
// (docs/interface/errors.md#texts-that-clients-compare). A reason replaces them.
var comparedMessages = map[int]string{
	4614: "An Organization cannot be mapped as an Account Store for another Organization.",
	5114: "The specified Account Store is not one of the Application's assigned Account Stores.",
	7100: "Login attempt failed because the specified password is incorrect.",
	7104: "Login attempt failed because there is no Account in the Application's associated Account Stores " +
		"with the specified username or email.",
	13100: "Verified phone numbers cannot be modified.",
	13101: "The provided phone number is invalid.",
	13102: "An existing phone with that number already exists for this Account.",
	13103: "The challenge message must include '${code}'.",
}

// catalog has every error below, in the order of definition.
var catalog []*Error

func define(status, code int, message string) *Error {
	e := &Error{Status: status, Code: code, Message: message}
	catalog = append(catalog, e)
	return e
}

func invalid(code int, message string) *Error {
	return define(http.StatusBadRequest, code, message)
}

// All returns every error that the product can return.
func All() []*Error { return append([]*Error(nil), catalog...) }

// HTTP's own conditions. The code repeats the status where the interface has
// no number of its own.
var (
	BadRequest       = define(http.StatusBadRequest, 400, apology)
	Unauthorized     = define(http.StatusUnauthorized, 401, "Authentication required.")
	Forbidden        = define(http.StatusForbidden, 403, "This is not allowed.")
	NotFound         = define(http.StatusNotFound, 404, notThere)
	MethodNotAllowed = define(http.StatusMethodNotAllowed, 1100, "This method is not supported here.")
	TooLarge         = define(http.StatusRequestEntityTooLarge, 413, "The request is too large.")
	Conflict         = define(http.StatusConflict, 409, "This cannot be done at the moment.")
	ContentType      = define(http.StatusUnsupportedMediaType, 1101, "The content type is not supported.")
	TenantSuspended  = define(http.StatusForbidden, 1930, "This tenant is suspended.")
	TooMany          = define(http.StatusTooManyRequests, 429, "Too many requests. Please try again in a moment.")
	Internal         = define(http.StatusInternalServerError, 500,
		"Something went wrong on our side. Please try again.")
	Unavailable = define(http.StatusServiceUnavailable, 503, "The service is busy. Please try again in a moment.")
)

// Values in a body. Unsupported is for a value that is not one of the allowed values; UnusedProperty
// for a member that is known, but not used by this kind of resource or request; UnknownProperty for a
// member that is not known.
var (
	Required      = invalid(2000, "Please fill in every required field.")
	Exists        = define(http.StatusConflict, 2001, "That is already taken. Please choose another.")
	Invalid       = invalid(2002, "One of the values is not valid. Please check it.")
	Unsupported   = invalid(2003, "One of the values is not among those offered. Please choose another.")
	WrongType     = invalid(2004, "One of the values is an invalid type. Please check it.")
	Encoding      = invalid(2005, "The text has characters that cannot be read. Please enter it again.")
	Format        = invalid(2006, "One of the values does not have the right form. Please check it.")
	TooShort      = invalid(2007, "One of the values is too short. Please make it longer.")
	TooLong       = invalid(2008, "One of the values is too long. Please make it shorter.")
	BelowMinimum  = invalid(2009, "A number is too small. Please enter a larger one.")
	AboveMaximum  = invalid(2010, "A number is too large. Please enter a smaller one.")
	BeforeMinimum = invalid(2011, "A time is too early. Please choose a later one.")
	AfterMaximum  = invalid(2012, "A time is too late. Please choose an earlier one.")
	OutOfRange    = invalid(2013, "A number is too small or too large. Please check it.")
	Reference     = invalid(2014,
		"Something that was chosen does not exist or cannot be used here. Please choose again.")
	UnknownProperty  = invalid(2015, "The request has an entry that is not known here.")
	NoSuchResource   = invalid(2016, "What was entered does not match a known resource. Please check it.")
	UnusedProperty   = invalid(2017, "The request has an entry that is not supported here.")
	MissingReference = invalid(2020, "Something that was chosen does not exist any more. Please choose again.")
	UnusableStatus   = invalid(2021, "Something that was chosen cannot be used at present. Please choose again.")
	NotSAML          = invalid(2022, "The account store is not a SAML directory.")
	NothingNamed     = define(http.StatusNotFound, 2023, "Nothing of that name was found. Please check it.")
	OtherInvitee     = invalid(2024, "The email differs from that of the invitation.")
)

// Queries.
var (
	MalformedQuery    = invalid(2100, "The query is malformed.")
	ParameterEmpty    = invalid(2101, "A query parameter needs a value.")
	ParameterRepeated = invalid(2102, "A query parameter may be given only once.")
	ParameterInvalid  = invalid(2103, "A query parameter is invalid.")
	OrderMalformed    = invalid(2104, "The order statement is malformed.")
	QueryUnsupported  = invalid(2105, "A query value is not supported.")
	OrderUnsupported  = invalid(2106, "That attribute cannot be sorted by.")
	NotExpandable     = invalid(2107, "That attribute cannot be expanded.")
	RangeReversed     = invalid(2108, "A range ends before it starts.")
)

// Custom data.
var (
	CustomDataKeyEmpty = invalid(3000, "A name in the additional data is empty. Please give every entry a name.")
	CustomDataKeyLong  = invalid(3001,
		"A name in the additional data is too long. Please use at most 255 characters.")
	CustomDataKeyInvalid = invalid(3002,
		"Names in the additional data can have letters, digits, _ and - alone. Please change them.")
	CustomDataReserved = invalid(3003, "A name in the additional data is reserved. Please choose another.")
	CustomDataSize     = invalid(3004, "The additional data is too large. Please store less.")
)

// The owner of a tenant.
var (
	OwnerKept   = invalid(4001, "The owner of the tenant cannot be deleted.")
	OwnerStatus = invalid(4002, "The status of the owner of the tenant is fixed.")
)

// Account stores of organizations.
var (
	OrgDirectoryTaken        = define(http.StatusConflict, 4520, "A directory of that name exists.")
	OrgNoAccountStore        = invalid(4600, noNewAccounts)
	OrgAccountStoreDisabled  = invalid(4601, noNewAccounts)
	OrgNoGroupStore          = invalid(4602, noNewGroups)
	OrgGroupStoreDisabled    = invalid(4603, noNewGroups)
	OrgAlreadyMapped         = define(http.StatusConflict, 4604, alreadyMapped)
	OrgNoStores              = invalid(4605, wrongLogin)
	OrgMirrorAccountStore    = invalid(4606, notAccountStore)
	OrgMirrorGroupAsStore    = invalid(4608, notAccountStore)
	OrgMirrorGroupStore      = invalid(4610, notGroupStore)
	OrgGroupAsGroupStore     = invalid(4612, notGroupStore)
	OrgInsideOrg             = invalid(4614, "An organization cannot contain another organization.")
	OrgDirectoryTypeMapped   = define(http.StatusConflict, 4700, typeMapped)
	OrgDirectoryTypeUnmapped = invalid(4701,
		"Logging in with that provider is not offered here. Please choose another way.")
)

// Account stores and callbacks of applications.
var (
	DirectoryTaken          = define(http.StatusConflict, 5010, "A directory of that name exists.")
	NoAccountStore          = invalid(5100, noNewAccounts)
	AccountStoreDisabled    = invalid(5101, noNewAccounts)
	NoGroupStore            = invalid(5102, noNewGroups)
	GroupStoreDisabled      = invalid(5103, noNewGroups)
	AlreadyMapped           = define(http.StatusConflict, 5104, alreadyMapped)
	NoStores                = invalid(5105, wrongLogin)
	MirrorAccountStore      = invalid(5106, notAccountStore)
	MirrorGroupAsStore      = invalid(5108, notAccountStore)
	MirrorGroupStore        = invalid(5110, notGroupStore)
	GroupAsGroupStore       = invalid(5112, notGroupStore)
	NotMapped               = invalid(5114, wrongLogin)
	OrgWithoutAccountStore  = invalid(5116, noNewAccounts)
	OrgDisabledAccountStore = invalid(5117, noNewAccounts)
	OrgWithoutGroupStore    = invalid(5118, noNewGroups)
	OrgDisabledGroupStore   = invalid(5119, noNewGroups)
	NoCallback              = invalid(5120, "The login cannot return to the application. Please contact its support.")
	CallbackNotListed       = invalid(5121,
		"The login cannot return to that address. Please contact the support of the application.")
	CallbackWildcardsOnly    = invalid(5122, "The login cannot return to the application. Please contact its support.")
	DirectoryTypeMapped      = define(http.StatusConflict, 5200, typeMapped)
	DirectoryTypeUnavailable = invalid(5201,
		"Logging in with that provider is not offered here. Please choose another way.")
)

// Directories, their providers and their password rules.
var (
	MirrorReadOnly       = invalid(6100, "Accounts and groups of a mirror directory are made in its source.")
	VerificationDisabled = invalid(6101, "Emails are not verified here, so nothing needs to be confirmed.")
	CannotBecomeMirror   = invalid(6201,
		"A directory of its own accounts cannot become a mirror. Please create another directory.")
	ProviderFixed = invalid(6202,
		"The provider of a directory cannot be changed. Please create another directory.")
	RedirectURIMissing = invalid(6203,
		"Logging in with that provider is not set up completely. Please contact support.")
	StrengthContradicts = invalid(6400,
		"No password could meet these rules. Please lower the minimums or raise the maximum length.")
	PasswordReused = invalid(6401, "That password was used before. Please choose another.")
)

// Logins.
var (
	WrongPassword        = invalid(7100, wrongLogin)
	AccountDisabled      = invalid(7101, wrongLogin)
	AccountUnverified    = invalid(7102, wrongLogin)
	AccountLocked        = invalid(7103, wrongLogin)
	NoSuchAccount        = invalid(7104, wrongLogin)
	GroupDisabled        = invalid(7105, wrongLogin)
	DirectoryDisabled    = invalid(7106, wrongLogin)
	OrganizationDisabled = invalid(7107, wrongLogin)
	ProviderRefused      = invalid(7200, "The login with that provider did not succeed. Please try again.")
	ProviderIncomplete   = invalid(7201,
		"That provider did not share your email, which is needed here. Please allow it.")
	MirroredProperty = invalid(7202,
		"This value is kept in your organization's own directory. Please have it changed there.")
	ProviderOtherClient = invalid(7203,
		"The login with that provider was made for another application. Please try again from here.")
	OutsideDomains = invalid(7204,
		"That email address is outside the domains of this directory. Please use another one.")
	DomainBlacklisted    = invalid(7205, "That email domain is not accepted. Please use another address.")
	DomainNotWhitelisted = invalid(7206, "That email domain is not accepted. Please use another address.")
	TemplateWithoutLink  = invalid(7301, "The mail would have no link. Please put one into the text.")
)

// Account links.
var (
	AlreadyLinked     = define(http.StatusConflict, 7500, "These accounts are already linked.")
	LinkToItself      = invalid(7501, "An account cannot be linked to itself.")
	LinkMalformed     = invalid(7502, "Two accounts are needed for a link. Please name both.")
	TooManyLinks      = invalid(7503, "This account is linked to too many others. Please remove a link first.")
	LinkSameDirectory = define(http.StatusConflict, 7504, "Accounts of the same directory cannot be linked.")
	LinkedToOther     = define(http.StatusConflict, 7505, "This account is linked to another one already.")
)

// Directory agents.
var (
	AgentUnreachable  = define(http.StatusBadGateway, 9000, sourceAway)
	ServerUnreachable = define(http.StatusBadGateway, 9001, sourceAway)
	AgentSlow         = define(http.StatusGatewayTimeout, 9002, sourceSlow)
	ServerSlow        = define(http.StatusGatewayTimeout, 9003, sourceSlow)
	AgentAnswer       = define(http.StatusBadGateway, 9004, sourceBroken)
	ServerAnswer      = define(http.StatusBadGateway, 9005, sourceBroken)
	ReferralFailed    = define(http.StatusBadGateway, 9006, sourceAway)
	SyncHeld          = define(http.StatusConflict, 9007,
		"The directory was not changed: too many accounts would have gone.")
)

// AgentFailures are the errors of a login whose password check by a directory agent had no result.
var AgentFailures = []error{
	AgentUnreachable, ServerUnreachable, AgentSlow, ServerSlow, AgentAnswer, ServerAnswer, ReferralFailed,
}

// Tokens.
var (
	TokenAccountDisabled = invalid(10010, "The session is no longer valid. Please log in again.")
	TokenExpired         = invalid(10011, "The session has expired. Please log in again.")
	TokenFromFuture      = invalid(10012, "The session is not valid. Please log in again.")
	TokenRevoked         = define(http.StatusNotFound, 10013,
		"The session is no longer valid. Please log in again.")
	TokenOtherApplication    = invalid(10014, "The session is not valid. Please log in again.")
	TokenApplicationDisabled = invalid(10015, "The session is no longer valid. Please log in again.")
	TokenAccountUnreachable  = invalid(10016, "The session is no longer valid. Please log in again.")
	TokenSignature           = invalid(10017, "Token is invalid") // a literal that clients compare
	TokenStoreDisabled       = invalid(10018, "The session is no longer valid. Please log in again.")
	ClientCredentials        = invalid(10019, "The client credentials are wrong.")
	TokenTypeUnknown         = invalid(10024, "The kind of that token is not known. Please name it.")
)

// SAML.
var (
	SAMLMalformed = invalid(10100, "The message of the identity provider cannot be read. Please log in again.")
	SAMLSignature = invalid(10101,
		"The message of the identity provider cannot be trusted. Please contact your administrator.")
	SAMLFailed       = invalid(10102, "The identity provider did not log you in. Please try again.")
	SAMLEntityTaken  = invalid(10110, "A service provider with that entity id exists already.")
	SAMLRegistration = invalid(10111, "That service provider is registered already.")
)

// The hosted login.
var (
	NameKeyUnknown  = invalid(11001, "There is no organization of that name. Please check the address.")
	NameKeyDisabled = invalid(11002,
		"That organization is not available at present. Please contact your administrator.")
	NameKeyNotMapped = invalid(11003, "That organization does not use this application. Please check the address.")
	ClaimEmpty       = invalid(11004,
		"The link to the login page is incomplete. Please start again from the application.")
	TokenReplayed    = invalid(11005, "That link was used already. Please log in again.")
	SessionTimedOut  = define(http.StatusUnauthorized, 12001, "The session is over. Please log in again.")
	NotAuthenticated = invalid(12002, "You are not logged in. Please log in again.")
	SMTPUnreachable  = invalid(13000, "The mail server cannot be reached. Please check its host and port.")
	SMTPCredentials  = invalid(13001, "The mail server refused the user name or password. Please check them.")
	SMTPProtocol     = invalid(13002,
		"The mail server does not speak that security protocol. Please choose a different one.")
	SMTPServerExists = invalid(13003, "There is a mail server already. Please delete it first.")
	PhoneNumberFixed = invalid(13100,
		"A verified phone number cannot be changed. Please add the new number as another phone.")
	PhoneNumberInvalid = invalid(13101, "That phone number is not valid. Please check it.")
	PhoneNumberExists  = define(http.StatusConflict, 13102,
		"An existing phone with that number already exists for this Account.")
	MessagePlaceholder = invalid(13103, "The message must contain ${code}.")
	CodeWrong          = invalid(13104, "That code is wrong. Please try again.")
	PhoneHasFactor     = invalid(13105, "That phone number is in use already.")
	CodeGeneration     = define(http.StatusInternalServerError, 13106, "A code could not be sent. Please try again.")
	CodeValidation     = define(http.StatusInternalServerError, 13107,
		"The code could not be checked. Please try again.")
	CodeExpired       = invalid(13108, "That code has expired. Please ask for a new one.")
	FactorDisabled    = invalid(13109, "This second factor is disabled. Please use another one.")
	PhoneDisabled     = invalid(13110, "This phone is disabled. Please use another one.")
	PhoneContradicts  = invalid(13111, "That phone has another number. Please name the phone or its number, not both.")
	ChallengeFinished = invalid(13112, "That code was used already. Please ask for a new one.")
	ChallengeFailures = invalid(13113, "Too many wrong codes. Please ask for a new one.")
)
