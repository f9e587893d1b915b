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

	// maxAttempts is the number of attempts for a request that the run needs: with the delays
	// above, more than two minutes. client-go has already retried up to ten times per request if
	// the API server sent Retry-After.
	maxAttempts = 12
)

// retry calls try until it succeeds, fails with an error that is not transient, or has failed
// maxAttempts times. It returns the last error.
func retry(ctx context.Context, clock Clock, try func() error) error {
	return retryWhile(ctx, clock, func(n int, err error) bool { return n < maxAttempts && transient(err) }, try)
}

// retryWhile calls try until it succeeds, or until retryable returns false for the number of
// attempts and the last error.
func retryWhile(ctx context.Context, clock Clock, retryable func(n int, err error) bool, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !retryable(n, err):
			return err
		}
		if err := clock.Sleep(ctx, delay(n, err)); err != nil {
			return err
		}
	}
}

// delay returns the wait after n attempts of which the last failed with err: exponential, with
// jitter, and at least what the API server asked for.
func delay(n int, err error) time.Duration {
	backoff := wait.Jitter(min(firstDelay<<(n-1), maxDelay), jitter)
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return max(backoff, time.Duration(seconds)*time.Second)
}
