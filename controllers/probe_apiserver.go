// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// +kubebuilder:rbac:groups=probe.conversion-operator.io,resources=conversionprobes,verbs=create

const (
	// probePause is between two requests while the API server does not follow yet.
	probePause = 250 * time.Millisecond
	// restoreTimeout bounds the writing of what is written in any case.
	restoreTimeout = 10 * time.Second
	// unmarked is how long an answer without a mark is asked for again: a converter
	// that knows nothing of probes may have made it, or none.
	unmarked = 5 * time.Second
)

// none is the conversion of the operator's own kind while no client asks.
var none = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}

// apiServerProber lets API servers call converters for an object of the operator's own kind,
// for one policy at a time. Nothing is stored: the object is created in dry runs.
type apiServerProber struct {
	client client.Writer
	// live reads from the API server: nothing here is worth a cache.
	live client.Reader
	turn slots
}

// probe points the operator's own kind at a converter, asks, and points it back.
func (a *apiServerProber) probe(ctx context.Context, s step.ProbeAPIServer) observed.BackgroundCheck {
	if !a.turn.enter(ctx) {
		return observed.BackgroundCheck{Reason: string(probe.ReasonTimeout), Message: "the manager is shutting down"}
	}
	defer a.turn.leave()
	bounded, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	err := a.probePointed(bounded, s)
	if failure, ok := errors.AsType[*probe.Error](err); ok {
		return observed.BackgroundCheck{Reason: string(failure.Reason), Message: failure.Message}
	}
	if err != nil {
		return observed.BackgroundCheck{Reason: string(probe.ReasonUnexpectedAnswer), Message: truncate(err.Error())}
	}
	return observed.BackgroundCheck{}
}

// tidy points the operator's own kind back, if a manager died during a probe.
func (a *apiServerProber) tidy(ctx context.Context) error {
	if !a.turn.enter(ctx) {
		return ctx.Err()
	}
	defer a.turn.leave()
	bounded, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	return a.pointBack(bounded)
}

func (a *apiServerProber) probePointed(ctx context.Context, s step.ProbeAPIServer) error {
	if err := a.pointBack(ctx); err != nil {
		return err
	}
	defer func() {
		lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
		defer cancel()
		_ = a.point(lasting, none) // who asks next, or starts, does it again
	}()
	if err := a.point(ctx, s.Conversion); err != nil {
		return err
	}
	return a.untilAnswered(ctx, s)
}

// pointBack makes sure that no previous converter is called.
func (a *apiServerProber) pointBack(ctx context.Context) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := a.live.Get(ctx, client.ObjectKey{Name: probe.Definition}, crd)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("CustomResourceDefinition %s is missing: install those of the operator again, or set spec.verification.apiServerProbe to false", probe.Definition)
	}
	if err != nil || crd.Spec.Conversion == nil || crd.Spec.Conversion.Strategy == apiextensionsv1.NoneConverter {
		return err
	}
	if err := a.point(ctx, none); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, probePause, true, func(ctx context.Context) (bool, error) {
		answer := probe.ProbeRequest()
		err := a.client.Create(ctx, answer, client.DryRunAll)
		return err == nil && !probe.Answered(answer), nil
	})
}

func (a *apiServerProber) point(ctx context.Context, conversion *apiextensionsv1.CustomResourceConversion) error {
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/conversion", "value": conversion}})
	if err != nil {
		return err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: probe.Definition}}
	return a.client.Patch(ctx, crd, client.RawPatch(types.JSONPatchType, patch), fieldOwner)
}

// untilAnswered asks until the API server has called the converter, or has tried to.
func (a *apiServerProber) untilAnswered(ctx context.Context, s step.ProbeAPIServer) error {
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
			return s.RulesetHash == "" && time.Since(began) > unmarked, nil
		case probe.CalledWebhook(last):
			verdict = probe.CallFailed(last)
			return true, nil
		}
		return false, nil // the API server is about to follow
	})
	switch {
	case err == nil && s.RulesetHash == "" && probe.Refused(verdict):
		return nil // it was reached, and knows no such kind
	case err == nil:
		return verdict
	case last != nil && !errors.Is(last, context.DeadlineExceeded):
		return fmt.Errorf("the API server rejected the probe: %w", last)
	case last != nil:
		return probe.NoAnswer(s.Timeout)
	}
	return probe.DidNotFollow(probe.Definition)
}
