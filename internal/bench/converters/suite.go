// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
)

// Suite is the name of this suite.
const Suite = "conversion"

// Handlers measures every subject on every body, each for the given time, and prints progress. It
// returns an error if the subjects disagree.
func Handlers(ctx context.Context, progress io.Writer, each time.Duration) ([]measure.Row, error) {
	all, err := subjects()
	if err != nil {
		return nil, err
	}
	reviews, err := bodies()
	if err != nil {
		return nil, err
	}
	for _, b := range reviews {
		if err := agree(b, all); err != nil {
			return nil, fmt.Errorf("nothing is measured, as the subjects do not do the same: %w", err)
		}
	}
	var rows []measure.Row
	for i, b := range reviews {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		fmt.Fprintf(progress, "%s: %s, %d bytes (%d of %d)\n", Suite, b.name, len(b.text), i+1, len(reviews))
		var contestants []measure.Subject
		for _, s := range all {
			contestants = append(contestants, measure.Subject{Name: s.name, Call: newClient(s.handler, b.text).call})
		}
		rows = append(rows, b.rows(measure.Run(contestants, each))...)
	}
	return rows, nil
}

// rows returns the measurements and their ratios.
func (b body) rows(samples []measure.Sample) []measure.Row {
	best := map[string]time.Duration{}
	for _, sample := range samples {
		best[sample.Subject] = sample.Best
	}
	object := time.Microsecond * time.Duration(b.objects)
	var rows []measure.Row
	for _, sample := range samples {
		for _, v := range []struct {
			value float64
			unit  string
		}{
			{measure.In(object, sample.Best), "us/object"},
			{measure.In(object, sample.Median), "us/object, median"},
			{sample.Allocs, "allocs/request"},
			{sample.Bytes, "B/request"},
			{measure.In(sample.Best, best[typed]), "times as fast as controller-runtime"},
			{measure.In(best[floorOwn], sample.Best), "times the time of the own scanner's check"},
		} {
			rows = append(rows, measure.Row{Suite: Suite, Case: b.name, Subject: sample.Subject, Value: v.value, Unit: v.unit})
		}
	}
	return rows
}
