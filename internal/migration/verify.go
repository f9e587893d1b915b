// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"

	"github.com/go-logr/logr"
)

// Verify is how much of a finished pass is proven by a second look.
type Verify string

const (
	// VerifyNone trusts the pass, and the audit after it.
	VerifyNone Verify = "None"
	// VerifySample looks at 300 objects again.
	VerifySample Verify = "Sample"
	// VerifyFull looks at every object again.
	VerifyFull Verify = "Full"
)

// verify patches objects once more, of which none may change.
func (e *Engine) verify(ctx context.Context, j *journal) error {
	if e.Verify == VerifyNone {
		return nil
	}
	if err := j.enter(ctx, StateVerifying); err != nil {
		return err
	}
	log := logr.FromContextOrDiscard(ctx)
	log.Info("Verifying: no object may change any more", "verify", e.Verify)
	var err error
	if e.Verify == VerifyFull {
		err = e.verifyAll(ctx, j)
	} else {
		j.record.Verified, err = e.review(ctx, j, objectsOf(j.again.Sample))
	}
	if err == nil {
		log.Info("Verified", "objects", j.record.Verified)
	}
	return err
}

// verifyAll is a second pass, which goes on after the last whole page like the
// first.
func (e *Engine) verifyAll(ctx context.Context, j *journal) error {
	for {
		if err := e.checkPin(ctx); err != nil {
			return err
		}
		page, err := e.pageAfter(ctx, j, j.record.Verification, func() error {
			j.record.Verified = 0
			return nil
		})
		if err != nil {
			return err
		}
		unchanged, err := e.review(ctx, j, page.Items)
		if err != nil {
			return err
		}
		j.record.Verified += unchanged
		j.record.Verification = page.Continue
		if page.Continue == "" {
			return nil
		}
		if err := j.save(ctx); err != nil {
			return err
		}
	}
}
