// Command kubernetes authenticates an ID token as the API server of Kubernetes does, with its own
// packages: it reads an AuthenticationConfiguration and a token from two files, and prints the user.
// deploy/setup/setup.sh compiles it, once for each version in go.mod.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, configFile, tokenFile string) error {
	text, err := os.ReadFile(configFile)
	if err != nil {
		return err
	}
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	var config apiserver.AuthenticationConfiguration
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
	if err := runtime.DecodeInto(decoder, text, &config); err != nil {
		return err
	}
	compiler := authenticationcel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err := validation.ValidateAuthenticationConfiguration(compiler, &config, nil).ToAggregate(); err != nil {
		return err
	}
	issuer := config.JWT[0]
	authority, err := dynamiccertificates.NewStaticCAContent("authority", []byte(issuer.Issuer.CertificateAuthority))
	if err != nil {
		return err
	}
	authenticator, err := oidc.New(ctx, oidc.Options{JWTAuthenticator: issuer, CAContentProvider: authority})
	if err != nil {
		return err
	}
	ready := func(context.Context) (bool, error) { return authenticator.HealthCheck() == nil, nil }
	if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, ready); err != nil {
		return errors.Join(err, authenticator.HealthCheck())
	}
	response, ok, err := authenticator.AuthenticateToken(ctx, strings.TrimSpace(string(token)))
	if err != nil || !ok {
		return fmt.Errorf("the token is refused: %v", err)
	}
	fmt.Println(response.User.GetName(), strings.Join(response.User.GetGroups(), ","))
	return nil
}
