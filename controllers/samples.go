// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	objects "github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

const (
	// maxHeads bounds the objects that a sample is chosen from.
	maxHeads = 5000
	// maxSampleBytes bounds what is read of a kind; one object is at most 1.5 MiB.
	maxSampleBytes = 64 << 20
	// triesAtOnce is how many objects are converted at the same time: while a version waits for that,
	// its clients get errors.
	triesAtOnce = 4
	// rightsLag is the pause between attempts while the API server does not know yet that the user
	// may read objects.
	rightsLag = 50 * time.Millisecond
)

// readError means that samples cannot be read or converted for infrastructure reasons. It says
// nothing about the objects.
type readError struct {
	reason string
	cause  error
}

func (e *readError) Error() string { return e.cause.Error() }

// unreadError means that the active conversion prevents objects from being read.
type unreadError struct{ what string }

func (e *unreadError) Error() string { return e.what }

// takeSamples converts live objects to other versions and back, until one is changed by that.
func (r *reader) takeSamples(ctx context.Context, s step.TakeSamples) observed.BackgroundCheck {
	bounded, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	held := newHeadCount(s.CRD, s.Rules.Ruleset)
	oversized := newOversizedCount(s)
	taken, err := r.sample(bounded, s, held, oversized)
	check := r.outcomeOf(ctx, s, taken, err)
	if oversized != nil {
		if s.Again {
			r.gatherOversized(ctx, s, oversized)
		}
		check.Oversized, check.Whole = oversized.found, oversized.restored
	}
	if check.Reason == "" {
		check.Held = held.counted()
	}
	return check
}

// outcomeOf returns the result of sampling.
func (r *reader) outcomeOf(ctx context.Context, s step.TakeSamples, taken int, err error) observed.BackgroundCheck {
	var failed *readError
	var unread *unreadError
	switch {
	case errors.As(err, &unread):
		return observed.BackgroundCheck{Reason: v1alpha1.ReasonObjectsUnreadable, Message: unread.Error(), Lost: true, Objects: taken}
	case errors.As(err, &failed):
		ctrl.LoggerFrom(ctx).Info("Live objects could not be read, or converted", "again", s.Again, "reason", failed.Error())
		return observed.BackgroundCheck{Reason: failed.reason, Message: failed.Error()}
	case err != nil:
		return observed.BackgroundCheck{Reason: v1alpha1.ReasonRoundTripFailed, Message: err.Error(), Lost: true, Objects: taken}
	}
	ctrl.LoggerFrom(ctx).Info("Converted live objects there and back", "objects", taken)
	return observed.BackgroundCheck{Objects: taken}
}

func (r *reader) sample(ctx context.Context, s step.TakeSamples, held *headCount, oversized *oversizedCount) (int, error) {
	cluster, err := r.connect(s.Reader)
	if err != nil {
		return 0, wrapUnreadable(err)
	}
	chosen, err := chooseSample(ctx, cluster, s, held)
	if err != nil || len(chosen) == 0 {
		return 0, err
	}
	pods, err := newSampler(s)
	if err != nil {
		return 0, wrapUnreadable(err)
	}
	taken, err := 0, error(nil)
	trying, failed := errgroup.WithContext(ctx)
	trying.SetLimit(triesAtOnce)
	for bytes := 0; len(chosen) > 0 && bytes < maxSampleBytes && failed.Err() == nil; chosen = chosen[1:] {
		var object objects.Object
		var found bool
		object, found, err = cluster.Object(ctx, crds.Resource(s.CRD, chosen[0].Version), chosen[0].Head.Namespace, chosen[0].Head.Name)
		if err != nil && probe.CalledWebhook(err) && !s.Again {
			err = nil
			continue // the active conversion fails, and is about to be replaced
		}
		if err != nil {
			break
		}
		if !found || pods.isOversized(object, s, oversized) {
			continue
		}
		trying.Go(func() error { return pods.try(failed, object) })
		taken++
		bytes += len(object.JSON)
	}
	tried := trying.Wait()
	switch {
	case tried != nil:
		return taken, tried
	case err != nil && ctx.Err() != nil && taken > 0:
		return taken, nil
	case err != nil && probe.CalledWebhook(err):
		return taken, newUnreadError("object "+chosen[0].Head.String(), chosen[0].Version, err)
	case err != nil:
		return taken, wrapUnreadable(err)
	}
	return taken, nil
}

// sampler sends objects through the converter pods. It is safe for concurrent use.
type sampler struct {
	checker *verify.Checker
	library *probe.Library
}

func newSampler(next step.TakeSamples) (*sampler, error) {
	library, err := probe.NewLibrary(next.CRD, next.Conversion, next.Addresses)
	if err != nil {
		return nil, err
	}
	checker, err := verify.NewThrough(next.CRD, next.Rules, library.Convert)
	return &sampler{checker, library}, err
}

// try converts an object between all versions and back.
func (s *sampler) try(ctx context.Context, object objects.Object) error {
	var broken *probe.Error // of a pod that did not answer
	checker := s.checker.Another(func(dst, object []byte, to string) ([]byte, error) {
		out, err := s.library.Convert(dst, object, to)
		if failed, ok := errors.AsType[*probe.Error](err); ok && failed.Reason != probe.ReasonUnexpectedAnswer {
			broken = failed
		}
		return out, err
	})
	checker.Check(ctx, object)
	if broken != nil {
		return &readError{string(broken.Reason), fmt.Errorf("converting %s through the converter pods: %w", object.String(), broken)}
	}
	if loss := checker.Loss(); loss != nil {
		return errors.New(describeLoss(loss))
	}
	return nil
}

// describeLoss names the object, the versions and the field, but no value: many users may read a
// status.
func describeLoss(loss *verify.Finding) string {
	const cure = ": correct the rules, or the object, which is looked at again after some minutes"
	object := loss.Example.Object
	switch loss.Kind {
	case verify.Lost:
		return fmt.Sprintf("object %s: %s does not come back as it was from %s to %s and back", object, loss.Example.Path, loss.From, loss.To) + cure
	case verify.Pruned:
		return fmt.Sprintf("object %s: the schema of %s does not know %s, which its conversion from %s makes, so that the API server takes it away",
			object, loss.To, loss.Example.Path, loss.From) + cure
	default:
		return fmt.Sprintf("object %s cannot be converted from %s to %s: %s", object, loss.From, loss.To, truncate(loss.Example.Message)) + cure
	}
}

// chooseSample lists the metadata of objects and chooses a sample of them. It counts their
// preserved data at the same time.
func chooseSample(ctx context.Context, cluster *live.Cluster, s step.TakeSamples, held *headCount) ([]live.Choice, error) {
	crd := s.CRD
	version, _, err := live.VersionToRead(crd)
	if err != nil {
		return nil, wrapUnreadable(err)
	}
	stored := slices.DeleteFunc(slices.Clone(crd.Status.StoredVersions), func(version string) bool { return !crds.Serves(crd, version) })
	var heads []live.Head
	err = retryForbidden(ctx, func() error {
		heads = heads[:0]
		held.begin(version)
		err := cluster.Heads(ctx, crds.Resource(crd, version), func(head live.Head) bool {
			heads = append(heads, held.add(head).Brief(crd.Spec.Group, stored))
			return len(heads) < maxHeads
		})
		held.end(err == nil && len(heads) < maxHeads)
		return err
	})
	switch {
	case err != nil && probe.CalledWebhook(err) && s.Again:
		return nil, newUnreadError("a list of the objects", version, err)
	case err != nil && probe.CalledWebhook(err):
		return nil, nil // the active conversion fails, and is about to be replaced
	case err != nil:
		return nil, wrapUnreadable(err)
	}
	return live.Choose(heads, crd.Spec.Group, stored, version, s.Most), nil
}

// newUnreadError returns a message that stays the same while the cause does.
func newUnreadError(what, version string, err error) error {
	_, text, hint := probe.CauseOf(err)
	if hint != "" {
		hint = ": " + hint
	}
	return &unreadError{fmt.Sprintf("%s cannot be read at %s: %s%s: correct the object or the rules, or what keeps API servers from the converter; it is looked at again after some minutes",
		what, version, truncate(text), hint)}
}

// retryForbidden repeats a read until the API server knows that the user may do it.
func retryForbidden(ctx context.Context, read func() error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, rightsLag, true, func(context.Context) (bool, error) {
		if last = read(); apierrors.IsForbidden(last) {
			return false, nil
		}
		return true, last
	})
	if last != nil {
		return last
	}
	return err
}

func wrapUnreadable(err error) error {
	return &readError{v1alpha1.ReasonObjectsUnreadable, fmt.Errorf("reading live objects to convert: %w", err)}
}
