// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	firstDelay = 250 * time.Millisecond
	maxDelay   = 30 * time.Second
	jitter     = 0.2

	// patience is the number of tries of a request that the run cannot go on
	// without: with the delays above, the API server may be away for more than
	// two minutes. client-go has waited for Retry-After before, up to ten times
	// a request.
	patience = 12
)

// patiently calls try until it succeeds, fails in a way that waiting does not
// cure, or patience ends. It returns the last error.
func patiently(ctx context.Context, clock Clock, try func() error) error {
	return patientlyWhile(ctx, clock, func(n int, err error) bool { return n < patience && transient(err) }, try)
}

// patientlyWhile is patiently for as long as worth accepts the last error and the
// number of attempts.
func patientlyWhile(ctx context.Context, clock Clock, worth func(n int, err error) bool, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !worth(n, err):
			return err
		}
		if err := clock.Sleep(ctx, delay(n, err)); err != nil {
			return err
		}
	}
}

// delay before another try, after n tries of which the last failed with err:
// doubling, with jitter, and never less than the API server asks for.
func delay(n int, err error) time.Duration {
	backoff := wait.Jitter(min(firstDelay<<(n-1), maxDelay), jitter)
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return max(backoff, time.Duration(seconds)*time.Second)
}
