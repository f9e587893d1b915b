// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package converters measures conversion webhooks on the same ConversionReviews, as http.Handlers
// that are called without a network.
//
// The kind is Task. The rules between its two versions (crd.yaml) are of most kinds (rules.yaml).
// The subjects (subjects.go) are
//
//   - ours: the handler of a converter pod with the compiled rules,
//   - controller-runtime's hub-and-spoke handler with Go types (peers.go),
//   - the example of the Kubernetes documentation, which edits decoded maps (peers.go),
//   - handlers that convert nothing: they read the body, check that it is JSON, and send it back, which
//     is the minimum for any converter.
//
// Before the measurement of a case, all converters must agree on the response (subjects.go), including the
// field that one version lacks and that is preserved in an annotation, so that no subject does
// less.
package converters

import (
	"context"
	"errors"
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
	for _, c := range cases {
		for _, count := range c.counts {
			b := newBody(c.shape, count)
			results.Tell("%s, %d bytes", b.name, len(b.text))
			if err := errors.Join(ctx.Err(), agree(b, all)); err != nil {
				return fmt.Errorf("%s is not measured: %w", b.name, err)
			}
			s.measure(results, b, all)
		}
	}
	return nil
}

func (s *Suite) measure(results *measure.Results, b body, all []subject) {
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
