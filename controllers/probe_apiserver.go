// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// +kubebuilder:rbac:groups=probe.conversion-operator.io,resources=conversionprobes,verbs=create

const (
	// probePause is the pause between requests while the API server does not use the new
	// conversion yet.
	probePause = 250 * time.Millisecond
	// restoreTimeout bounds restoring the CustomResourceDefinition after a probe, even one that
	// was cancelled.
	restoreTimeout = 10 * time.Second
	// unmarkedTimeout is how long requests are repeated after an answer without a mark: either no
	// converter was called, or one that does not know probes.
	unmarkedTimeout = 5 * time.Second
)

// noConversion is the conversion of the probe kind between probes.
var noConversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}

// apiServerProber makes API servers call a converter for an object of the operator's probe kind,
// for one policy at a time. It creates the object in dry runs, so nothing is stored.
type apiServerProber struct {
	client client.Writer
	// live reads from the API server; caching the probe kind is not worthwhile.
	live client.Reader
	// slot is that of the check, and of tidy.
	slot slots
	// reached is when API servers reached a Service that many policies have, by
	// step.ProbeAPIServer.Service.
	reached memory[string, time.Time]
}

// reachedLasts is how long an API server that has reached a Service need not be asked again.
const reachedLasts = observed.DefaultProofLifetime

// probe activates the converter for the probe kind, creates a probe object, and restores the kind.
func (a *apiServerProber) probe(ctx context.Context, s step.ProbeAPIServer) observed.BackgroundCheck {
	a.reached.forgetAll(func(_ string, at time.Time) bool { return time.Since(at) >= reachedLasts })
	if _, reached := a.reached.get(s.Service); reached {
		return observed.BackgroundCheck{}
	}
	bounded, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	err := a.probeWithConversion(bounded, s)
	if failure, ok := errors.AsType[*probe.Error](err); ok {
		return observed.BackgroundCheck{Reason: string(failure.Reason), Message: failure.Message}
	}
	if err != nil {
		return observed.BackgroundCheck{Reason: string(probe.ReasonUnexpectedAnswer), Message: truncate(err.Error())}
	}
	if s.Service != "" {
		a.reached.put(s.Service, time.Now())
	}
	return observed.BackgroundCheck{}
}

// tidy restores the probe kind if a manager died during a probe.
func (a *apiServerProber) tidy(ctx context.Context) error {
	if !a.slot.acquire(ctx) {
		return ctx.Err()
	}
	defer a.slot.release()
	bounded, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	return a.reset(bounded)
}

func (a *apiServerProber) probeWithConversion(ctx context.Context, s step.ProbeAPIServer) error {
	if err := a.reset(ctx); err != nil {
		return err
	}
	defer func() {
		lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
		defer cancel()
		_ = a.setConversion(lasting, noConversion) // the next probe and the next start repeat it
	}()
	if err := a.setConversion(ctx, s.Conversion); err != nil {
		return err
	}
	return a.waitForAnswer(ctx, s)
}

// reset removes a previous conversion, and waits until the API server no longer calls its
// converter.
func (a *apiServerProber) reset(ctx context.Context) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := a.live.Get(ctx, client.ObjectKey{Name: probe.Definition}, crd)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("CustomResourceDefinition %s is missing: install those of the operator again, or set spec.verification.apiServers to None", probe.Definition)
	}
	if err != nil || crd.Spec.Conversion == nil || crd.Spec.Conversion.Strategy == apiextensionsv1.NoneConverter {
		return err
	}
	if err := a.setConversion(ctx, noConversion); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, probePause, true, func(ctx context.Context) (bool, error) {
		answer := probe.ProbeRequest()
		err := a.client.Create(ctx, answer, client.DryRunAll)
		return err == nil && !probe.Answered(answer), nil
	})
}

func (a *apiServerProber) setConversion(ctx context.Context, conversion *apiextensionsv1.CustomResourceConversion) error {
	patch := jsonPatch([]map[string]any{{"op": "replace", "path": "/spec/conversion", "value": conversion}})
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: probe.Definition}}
	return a.client.Patch(ctx, crd, patch, fieldOwner)
}

// waitForAnswer repeats the request until the API server has called the converter or failed to
// call it.
func (a *apiServerProber) waitForAnswer(ctx context.Context, s step.ProbeAPIServer) error {
	var last, verdict error
	began := time.Now()
	err := wait.PollUntilContextCancel(ctx, probePause, true, func(ctx context.Context) (bool, error) {
		answer := probe.ProbeRequest()
		last = a.client.Create(ctx, answer, client.DryRunAll)
		switch {
		case last == nil && probe.Answered(answer):
			verdict = probe.CheckAnswer(answer, s.RulesetHash)
			return true, nil
		case last == nil:
			return s.RulesetHash == "" && time.Since(began) > unmarkedTimeout, nil
		case probe.CalledWebhook(last):
			verdict = probe.CallFailed(last)
			return true, nil
		}
		return false, nil // the API server does not use the conversion yet
	})
	switch {
	case err == nil && s.RulesetHash == "" && probe.Refused(verdict):
		return nil // the API server reached the converter, which does not know the probe kind
	case err == nil:
		return verdict
	case last != nil && !errors.Is(last, context.DeadlineExceeded):
		return fmt.Errorf("the API server rejected the probe: %w", last)
	case last != nil:
		return probe.NoAnswer(s.Timeout)
	}
	return probe.DidNotFollow(probe.Definition)
}
