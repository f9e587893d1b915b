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
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/internal/cli/audit"
	verify "github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
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

// service reads a Service, and its endpoints; nil if the audit may not read them.
func (a *auditor) service(ctx context.Context, crd string, reference *apiextensionsv1.ServiceReference) *audit.Service {
	name := types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}
	once, _ := a.services.LoadOrStore(name, sync.OnceValues(func() (*audit.Service, error) { return a.readService(ctx, name) }))
	found, err := once.(func() (*audit.Service, error))()
	if err != nil {
		a.skip(crd, "Service "+name.String(), err)
	}
	return found
}

func (a *auditor) readService(ctx context.Context, name types.NamespacedName) (*audit.Service, error) {
	service := corev1.Service{}
	err := verify.Send(ctx, a.client.Get().AbsPath("/api/v1/namespaces", name.Namespace, "services", name.Name), &service)
	if apierrors.IsNotFound(err) {
		return &audit.Service{}, nil
	}
	if err != nil {
		return nil, err
	}
	found := audit.ServiceOf(&service)
	if found.ExternalName != "" {
		return found, nil
	}
	slices := discoveryv1.EndpointSliceList{}
	err = verify.Send(ctx, a.client.Get().AbsPath("/apis/discovery.k8s.io/v1/namespaces", name.Namespace, "endpointslices").
		Param("labelSelector", discoveryv1.LabelServiceName+"="+name.Name), &slices)
	if err == nil {
		found.Ready = ready(slices.Items)
	}
	return found, err
}

// ready counts the ready endpoints. An endpoint without that field is ready.
func ready(slices []discoveryv1.EndpointSlice) int {
	n := 0
	for _, slice := range slices {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				n++
			}
		}
	}
	return n
}
