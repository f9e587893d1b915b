// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/audit"
	verify "github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
)

// userAgent names the reader in audit logs.
const userAgent = "conversion-operator-audit"

// Options of an audit.
type Options struct {
	// Names of the definitions, none for all.
	Names []string
	// Next are manifests that the user is about to apply, by name.
	Next map[string]*apiextensionsv1.CustomResourceDefinition
	// Bundle for OLM that has Next, nil if none is known.
	Bundle *audit.Bundle
	// NoReads skips the checks that need the right to read objects.
	NoReads bool
	// Soon is how long before its expiry a certificate is reported.
	Soon time.Duration
	// AtOnce is the number of definitions to check, and hold in memory, at the same
	// time; the audit reads ahead a page of this size.
	AtOnce int
	// Threshold leaves out less severe findings.
	Threshold audit.Severity
	// Now is the time.
	Now time.Time
	// Progress receives, one call after the other, the number of checked definitions,
	// and the total if the API server reports it.
	Progress func(done, total int)
}

// The rights of an audit, without those for objects: it reads one of each kind, at each
// version, with the rights of the user. It reports as not checked what it may not read.
//
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list
// +kubebuilder:rbac:groups=conversion-operator.io,resources=conversionpolicies,verbs=list
// +kubebuilder:rbac:groups=storagemigration.k8s.io,resources=storageversionmigrations,verbs=list
// +kubebuilder:rbac:groups="",resources=services,verbs=get
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=list

// auditor is one audit of one cluster.
type auditor struct {
	Options
	client rest.Interface
	// policies and migrations belong to definitions, by the names of these.
	policies   map[string]*v1alpha1.ConversionPolicy
	migrations map[string][]audit.Migration
	// services are read once, because definitions of a project share one.
	services sync.Map
	// scalers are HorizontalPodAutoscalers, which are read once, and only if one may fail.
	readAutoscalers sync.Once
	scalers         map[schema.GroupKind][]string

	mu         sync.Mutex
	findings   []audit.Finding
	notChecked map[audit.NotChecked]bool
	checked    map[string]bool
	total      int
}

// Audit checks the definitions of a cluster. It returns an error if there cannot be any result.
func Audit(ctx context.Context, config *rest.Config, options Options) (*audit.Report, error) {
	client, err := verify.Client(config, userAgent)
	if err != nil {
		return nil, err
	}
	a := &auditor{
		Options: options, client: client, policies: map[string]*v1alpha1.ConversionPolicy{}, migrations: map[string][]audit.Migration{},
		scalers: map[schema.GroupKind][]string{}, notChecked: map[audit.NotChecked]bool{}, checked: map[string]bool{},
	}
	if err := a.readRelated(ctx); err != nil {
		return nil, err
	}
	group, inGroup := errgroup.WithContext(ctx)
	// One more goroutine reads the list.
	group.SetLimit(a.AtOnce + 1)
	visit := func(crd *apiextensionsv1.CustomResourceDefinition) {
		group.Go(func() error { return a.check(inGroup, crd) })
	}
	group.Go(func() error { return a.definitions(inGroup, visit) })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	a.checkPoliciesAlone()
	return audit.NewReport(len(a.checked), a.findings, slices.Collect(maps.Keys(a.notChecked)), a.Threshold), nil
}

// check observes one definition, and stores its findings. It fails only if the audit
// is cancelled.
func (a *auditor) check(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	observed := a.observe(ctx, crd)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	findings := audit.Check(observed)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.findings = append(a.findings, findings...)
	a.checked[crd.Name] = true
	a.Progress(len(a.checked), max(a.total, len(a.checked)))
	return nil
}

func (a *auditor) observe(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) *audit.Observed {
	o := &audit.Observed{
		CRD: crd, Live: true, Next: a.Next[crd.Name], Bundle: a.Bundle, Now: a.Now, Soon: a.Soon,
		Policy: a.policies[crd.Name], Migrations: a.migrations[crd.Spec.Names.Plural+"."+crd.Spec.Group],
	}
	if o.WithoutScale() != "" {
		o.Autoscalers = a.autoscalers(ctx, crd)
	}
	webhook := o.ClientConfig()
	if webhook != nil && webhook.Service != nil {
		o.Service = a.service(ctx, crd.Name, webhook.Service)
	}
	if !a.NoReads {
		a.reads(ctx, o)
	}
	if webhook != nil && !answered(o.Reads, crd) {
		o.Handshake = handshake(ctx, webhook)
	}
	return o
}

// checkPoliciesAlone stores findings for policies without a definition.
func (a *auditor) checkPoliciesAlone() {
	if len(a.Names) > 0 {
		return
	}
	for name, policy := range a.policies {
		if !a.checked[name] {
			a.findings = append(a.findings, audit.Check(&audit.Observed{Policy: policy, Live: true, Now: a.Now})...)
		}
	}
}

// skip records what the audit could not check.
func (a *auditor) skip(crd, what string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notChecked[audit.NotChecked{CRD: crd, What: what, Why: err.Error()}] = true
}
