module github.com/doorward/doorward/deploy/standalone

go 1.26.0

require (
	github.com/doorward/doorward/pkg v0.0.0
	github.com/doorward/doorward/gateway v0.0.0
	github.com/doorward/doorward/services/directory v0.0.0
	github.com/doorward/doorward/services/application v0.0.0
	github.com/doorward/doorward/services/oauth v0.0.0
	github.com/doorward/doorward/services/mfa v0.0.0
	github.com/doorward/doorward/services/notification v0.0.0
	github.com/doorward/doorward/services/idsite v0.0.0
	github.com/doorward/doorward/deploy/mailbox v0.0.0
)

replace (
	github.com/doorward/doorward/pkg => ../../pkg
	github.com/doorward/doorward/gateway => ../../gateway
	github.com/doorward/doorward/services/directory => ../../services/directory
	github.com/doorward/doorward/services/application => ../../services/application
	github.com/doorward/doorward/services/oauth => ../../services/oauth
	github.com/doorward/doorward/services/mfa => ../../services/mfa
	github.com/doorward/doorward/services/notification => ../../services/notification
	github.com/doorward/doorward/services/idsite => ../../services/idsite
	github.com/doorward/doorward/deploy/mailbox => ../mailbox
)
