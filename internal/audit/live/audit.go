// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/audit"
	verify "github.com/conversion-operator/conversion-operator/internal/verify/live"
)

// userAgent names the reader in audit logs.
const userAgent = "conversion-operator-audit"

// Options of an audit.
type Options struct {
	// Names of the definitions, none for all.
	Names []string
	// Next are manifests that the user is about to apply, by name.
	Next map[string]*apiextensionsv1.CustomResourceDefinition
	// NoReads skips the checks that need the right to read objects.
	NoReads bool
	// Soon is how long before its expiry a certificate is reported.
	Soon time.Duration
	// AtOnce is the number of definitions to examine, and hold in memory, at the same
	// time; the audit reads ahead a page of this size.
	AtOnce int
	// Threshold leaves out less severe findings.
	Threshold audit.Severity
	// Now is the time.
	Now time.Time
	// Progress receives, one call after the other, the number of examined definitions,
	// and the total if the API server reports it.
	Progress func(done, of int)
}

// auditor is one audit of one cluster.
type auditor struct {
	Options
	client   rest.Interface
	surround surroundings
	services services

	mu         sync.Mutex
	findings   []audit.Finding
	notChecked map[audit.NotChecked]bool
	seen       map[string]bool
	of         int
}

// Audit examines a cluster. It returns an error if there cannot be any result.
func Audit(ctx context.Context, config *rest.Config, options Options) (*audit.Report, error) {
	client, err := verify.Client(config, userAgent)
	if err != nil {
		return nil, err
	}
	a := &auditor{Options: options, client: client, notChecked: map[audit.NotChecked]bool{}, seen: map[string]bool{}}
	if err := a.surroundings(ctx); err != nil {
		return nil, err
	}
	group, inGroup := errgroup.WithContext(ctx)
	// One more goroutine reads the list.
	group.SetLimit(a.AtOnce + 1)
	look := func(crd *apiextensionsv1.CustomResourceDefinition) {
		group.Go(func() error { return a.look(inGroup, crd) })
	}
	group.Go(func() error { return a.definitions(inGroup, look) })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	a.policiesAlone()
	return audit.NewReport(len(a.seen), a.findings, a.missed(), a.Threshold), nil
}

// look observes one definition, and stores its findings. It fails only if the audit
// is cancelled.
func (a *auditor) look(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	observed := a.observe(ctx, crd)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	findings := audit.Look(observed)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.findings = append(a.findings, findings...)
	a.seen[crd.Name] = true
	a.Progress(len(a.seen), max(a.of, len(a.seen)))
	return nil
}

func (a *auditor) observe(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) *audit.Observed {
	o := &audit.Observed{
		CRD: crd, Live: true, Next: a.Next[crd.Name], Now: a.Now, Soon: a.Soon,
		Policy: a.surround.policies[crd.Name], Migrations: a.surround.migrations[crd.Spec.Names.Plural+"."+crd.Spec.Group],
	}
	webhook := clientConfig(crd)
	if webhook != nil && webhook.Service != nil {
		o.Service = a.service(ctx, crd.Name, webhook.Service)
	}
	if !a.NoReads {
		a.reads(ctx, o)
	}
	if webhook != nil && !answered(o.Reads, crd) {
		o.Handshake = shakeHands(ctx, webhook)
	}
	return o
}

// policiesAlone returns findings for policies without a definition.
func (a *auditor) policiesAlone() {
	if len(a.Names) > 0 {
		return
	}
	for name, policy := range a.surround.policies {
		if !a.seen[name] {
			a.findings = append(a.findings, audit.Look(&audit.Observed{Policy: policy, Live: true, Now: a.Now})...)
		}
	}
}

// skip records what the audit could not check.
func (a *auditor) skip(crd, what string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notChecked[audit.NotChecked{CRD: crd, What: what, Why: err.Error()}] = true
}

func (a *auditor) missed() []audit.NotChecked {
	var missed []audit.NotChecked
	for entry := range a.notChecked {
		missed = append(missed, entry)
	}
	return missed
}

func clientConfig(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.WebhookClientConfig {
	if crd.Spec.Conversion == nil || crd.Spec.Conversion.Webhook == nil {
		return nil
	}
	return crd.Spec.Conversion.Webhook.ClientConfig
}

// notFound is the error for a requested definition that does not exist.
func notFound(name string) error {
	return fmt.Errorf("the cluster has no CustomResourceDefinition %s: name it <plural>.<group>, for example crontabs.example.com", name)
}
