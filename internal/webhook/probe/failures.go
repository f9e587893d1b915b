// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"

	pods "github.com/conversion-operator/conversion-operator/internal/webhook"
)

// maxFailuresBytes exceeds what a pod can remember of one CustomResourceDefinition.
const maxFailuresBytes = 256 << 10

// failures returns the failed conversions of a pod, or nil on any error: the pod has passed its
// probe by then, and a pod of another version of the operator may not support the request.
func (c *connection) failures(ctx context.Context, target *Target) *pods.Failures {
	if target.FailuresToken == "" {
		return nil
	}
	c.token = target.FailuresToken
	path := pods.FailuresPath
	if target.CRD != "" {
		path += "?" + url.Values{pods.FailuresCRD: {target.CRD}}.Encode()
	}
	body, err := c.call(ctx, http.MethodGet, path, nil)
	var failures pods.Failures
	if err != nil || len(body) > maxFailuresBytes || json.Unmarshal(body, &failures) != nil || failures.Now.IsZero() {
		return nil
	}
	return &failures
}

// asProbe adds the User-Agent of probes to the calls of the library.
func asProbe(resolver webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	return prober{resolver}
}

type prober struct {
	webhook.AuthenticationInfoResolver
}

// ClientConfigFor implements webhook.AuthenticationInfoResolver.
func (p prober) ClientConfigFor(hostPort string) (*rest.Config, error) {
	return withProbeAgent(p.AuthenticationInfoResolver.ClientConfigFor(hostPort))
}

// ClientConfigForService implements webhook.AuthenticationInfoResolver.
func (p prober) ClientConfigForService(name, namespace string, port int) (*rest.Config, error) {
	return withProbeAgent(p.AuthenticationInfoResolver.ClientConfigForService(name, namespace, port))
}

func withProbeAgent(config *rest.Config, err error) (*rest.Config, error) {
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.UserAgent = pods.ProbeAgent
	return config, nil
}
