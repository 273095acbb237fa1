package rest

import (
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory/agent"
)

// maxWait is the longest long poll that an agent may ask for, in seconds. It is answered after 5 s
// (maxPoll in services/directory/agent/check.go) at the latest.
const maxWait = 20

type agentCheckView struct {
	ID         id.ID             `json:"id"`
	Username   string            `json:"username"`
	Password   string            `json:"password"`
	ExternalID string            `json:"externalId"`
	Trace      map[string]string `json:"trace"`
}

// agentChecks is the long poll with which an agent fetches password checks.
func agentChecks(svc *agent.Service) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, err := rest.Ref(c)
		if err != nil {
			return err
		}
		wait, err := strconv.Atoi(c.Query("wait", "0"))
		if err != nil || wait < 0 || wait > maxWait {
			return apierr.ParameterInvalid.Because("wait is a number of seconds from 0 to %d", maxWait)
		}
		checks, err := svc.AgentChecks(c.UserContext(), at, time.Duration(wait)*time.Second)
		if err != nil {
			return err
		}
		views := make([]agentCheckView, len(checks))
		for i, check := range checks {
			views[i] = agentCheckView{check.ID, check.Username, check.PlainPassword.Reveal(), check.ExternalID,
				check.Trace}
		}
		return noStore(c, views)
	}
}

// answerCheck stores the result of a password check.
func answerCheck(svc *agent.Service) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, err := rest.Ref(c)
		if err != nil {
			return err
		}
		check, err := rest.ID(c, "check")
		if err != nil {
			return err
		}
		var in agent.CheckAnswer
		if err := rest.Body[struct{}](c, &in); err != nil {
			return err
		}
		if err := svc.AnswerCheck(c.UserContext(), at, check, in); err != nil {
			return err
		}
		return rest.NoContent(c)
	}
}
