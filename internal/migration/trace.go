// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"

	"github.com/conversion-operator/conversion-operator/internal/tracing"
)

// traced does what is left of the run as one trace.
func (e *Engine) traced(ctx context.Context, j *journal) error {
	return e.Tracer.Trace(ctx, "migrate", func(ctx context.Context) error { return e.migrate(ctx, j) },
		tracing.Policy.String(e.Pin.Name), tracing.Run.String(e.Spec.Run),
		tracing.CRD.String(e.Pin.Name), tracing.CRDGeneration.Int64(e.Pin.Generation))
}

// phase does one part of the run as one span of its trace.
func phase(ctx context.Context, name string, j *journal, do func(context.Context, *journal) error) error {
	return tracing.Span(ctx, name, func(ctx context.Context) error { return do(ctx, j) })
}
