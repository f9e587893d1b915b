// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

// verify patches objects once more, of which none may change.
func (e *Engine) verify(ctx context.Context, j *journal) error {
	if e.Verify == v1alpha1.MigrationVerifyNone {
		return nil
	}
	if err := j.enter(ctx, contract.StateVerifying); err != nil {
		return err
	}
	log := logr.FromContextOrDiscard(ctx)
	log.Info("Verifying: no object may change any more", "verify", e.Verify)
	var err error
	if e.Verify == v1alpha1.MigrationVerifyFull {
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
