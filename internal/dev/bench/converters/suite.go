// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package converters measures conversion webhooks on the same ConversionReviews, as http.Handlers
// that are called without a network.
//
// The kind is Task. The rules between its two versions (crd.yaml) are of most kinds (rules.yaml).
// The subjects (subjects.go) are
//
//   - ours: the handler of a converter pod with the compiled rules,
//   - controller-runtime's hub-and-spoke handler with Go types (typed.go),
//   - the example of the Kubernetes documentation, which edits decoded maps (unstructured.go),
//   - handlers that convert nothing: they read the body, check that it is JSON, and send it back, which
//     is the minimum for any converter.
//
// Before the measurement, all converters must agree on every response (subjects.go), including the
// field that one version lacks and that is preserved in an annotation, so that no subject does
// less.
package converters

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/dev/bench/measure"
)

// Suite measures every subject on every body.
type Suite struct{ each time.Duration }

// Flags defines the flags of the suite.
func (s *Suite) Flags(flags *flag.FlagSet) {
	flags.DurationVar(&s.each, "time", 600*time.Millisecond, "how long each subject runs in each case")
}

// Run returns an error if the subjects disagree.
func (s *Suite) Run(ctx context.Context, results *measure.Results) error {
	all, err := subjects()
	if err != nil {
		return err
	}
	var reviews []body
	for _, c := range cases {
		for _, count := range c.counts {
			b, err := newBody(c.shape, count)
			if err != nil {
				return err
			}
			if err := agree(b, all); err != nil {
				return fmt.Errorf("nothing is measured, as the subjects do not do the same: %w", err)
			}
			reviews = append(reviews, b)
		}
	}
	for i, b := range reviews {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		results.Tell("%s, %d bytes (%d of %d)", b.name, len(b.text), i+1, len(reviews))
		var contestants []measure.Subject
		for _, subject := range all {
			contestants = append(contestants, measure.Subject{Name: subject.name, Call: newClient(subject.handler, b.text).call})
		}
		best := measure.Run(contestants, s.each)
		for _, subject := range all {
			results.Add(b.name, subject.name, measure.In(time.Microsecond*time.Duration(b.objects), best[subject.name]), "us/object")
			results.Add(b.name, subject.name, measure.In(best[subject.name], best[Typed]), "times as fast as controller-runtime")
			results.Add(b.name, subject.name, measure.In(best[floorOwn], best[subject.name]), "times the own scanner's check")
		}
	}
	return nil
}
