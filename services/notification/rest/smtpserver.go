package rest

import (
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/notification/store"
)

// smtpServerView is all of a server but its password, which is never shown.
type smtpServerView struct {
	rest.Head
	Name             *string   `json:"name"`
	Description      *string   `json:"description"`
	Username         string    `json:"username"`
	Host             string    `json:"host"`
	Port             int       `json:"port"`
	SecurityProtocol *string   `json:"securityProtocol"`
	Status           string    `json:"status"`
	Tenant           href.Link `json:"tenant"`
}

func (v views) smtpServer(s store.SMTPServer) smtpServerView {
	return smtpServerView{
		Head: rest.NewHead(v.base.To("smtpServers", s.ID), s.CreatedAt, s.ModifiedAt),
		Name: s.Name, Description: s.Description, Username: s.Username, Host: s.Host, Port: s.Port,
		SecurityProtocol: s.SecurityProtocol, Status: s.Status, Tenant: v.base.Link("tenants", s.TenantID),
	}
}
