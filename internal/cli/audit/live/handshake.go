// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/internal/cli/audit"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// handshakeTimeout is short: most webhooks cannot be reached from outside the cluster.
const handshakeTimeout = 3 * time.Second

// handshake requests the certificate of the webhook. It returns nil if there is no
// result, because the webhook cannot be reached from here, or because API servers trust
// authorities that this machine does not trust.
func handshake(ctx context.Context, config *apiextensionsv1.WebhookClientConfig) *audit.Handshake {
	address, name := addressOf(config)
	if address == "" || len(bytes.TrimSpace(config.CABundle)) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	notAfter, err := probe.Handshake(ctx, probe.OwnTarget{Address: address, CABundle: config.CABundle, ServerName: name})
	if failed, ok := errors.AsType[*probe.Error](err); ok && failed.Reason == probe.ReasonTLSVerificationFailed {
		return &audit.Handshake{Address: address, Refused: failed.Message}
	}
	if err != nil {
		return nil
	}
	return &audit.Handshake{Address: address, NotAfter: notAfter}
}

// addressOf returns where a webhook listens, and the name that its certificate needs.
// The name of a Service resolves only inside a cluster.
func addressOf(config *apiextensionsv1.WebhookClientConfig) (address, name string) {
	if service := config.Service; service != nil {
		name = service.Name + "." + service.Namespace + ".svc"
		return net.JoinHostPort(name, fmt.Sprint(ptr.Deref(service.Port, audit.DefaultPort))), name
	}
	if config.URL == nil {
		return "", ""
	}
	target, err := url.Parse(*config.URL)
	if err != nil || target.Hostname() == "" {
		return "", ""
	}
	return net.JoinHostPort(target.Hostname(), cmp.Or(target.Port(), "443")), target.Hostname()
}
