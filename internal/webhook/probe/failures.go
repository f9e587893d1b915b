// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"encoding/json"
	"net/http"

	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"

	pods "github.com/conversion-operator/conversion-operator/internal/webhook"
)

// maxFailuresBytes is more than a pod can remember.
const maxFailuresBytes = 256 << 10

// failures returns which conversions have failed in a pod, or nil where it does not
// tell: that it converts as it must is proven by then, and a pod of another version
// of the operator may not know the question.
func (c *connection) failures(ctx context.Context, token string) *pods.Failures {
	if token == "" {
		return nil
	}
	c.token = token
	body, err := c.call(ctx, http.MethodGet, pods.FailuresPath, nil)
	var told pods.Failures
	if err != nil || len(body) > maxFailuresBytes || json.Unmarshal(body, &told) != nil || told.Now.IsZero() {
		return nil
	}
	return &told
}

// asProbe lets the calls of the API server's library say whose they are.
func asProbe(resolver webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	return prober{resolver}
}

type prober struct {
	webhook.AuthenticationInfoResolver
}

// ClientConfigFor implements webhook.AuthenticationInfoResolver.
func (p prober) ClientConfigFor(hostPort string) (*rest.Config, error) {
	return named(p.AuthenticationInfoResolver.ClientConfigFor(hostPort))
}

// ClientConfigForService implements webhook.AuthenticationInfoResolver.
func (p prober) ClientConfigForService(name, namespace string, port int) (*rest.Config, error) {
	return named(p.AuthenticationInfoResolver.ClientConfigForService(name, namespace, port))
}

func named(config *rest.Config, err error) (*rest.Config, error) {
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.UserAgent = pods.ProbeAgent
	return config, nil
}
