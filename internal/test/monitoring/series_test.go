// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// sample is one value at one time, in milliseconds.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// memory keeps series, as a Prometheus does that has just started.
type memory struct {
	series map[uint64]*series
}

type series struct {
	labels  labels.Labels
	samples []chunks.Sample
}

func newMemory() *memory { return &memory{series: map[uint64]*series{}} }

// add appends a sample, later than those that are there.
func (m *memory) add(of labels.Labels, at time.Time, is float64) {
	known := m.series[of.Hash()]
	if known == nil {
		known = &series{labels: of}
		m.series[of.Hash()] = known
	}
	known.samples = append(known.samples, sample{at.UnixMilli(), is})
}

// end marks a series that is there no more.
func (m *memory) end(of labels.Labels, at time.Time) {
	m.add(of, at, math.Float64frombits(value.StaleNaN))
}

// Querier implements storage.Queryable.
func (m *memory) Querier(begin, end int64) (storage.Querier, error) {
	return &querier{m, begin, end}, nil
}

type querier struct {
	*memory
	begin, end int64
}

func (q *querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &seriesSet{at: -1}
	for _, series := range q.series {
		if !matches(series.labels, matchers) {
			continue
		}
		var samples []chunks.Sample
		for _, sample := range series.samples {
			if sample.T() >= q.begin && sample.T() <= q.end {
				samples = append(samples, sample)
			}
		}
		found.series = append(found.series, storage.NewListSeries(series.labels, samples))
	}
	return found
}

func matches(of labels.Labels, matchers []*labels.Matcher) bool {
	for _, matcher := range matchers {
		if !matcher.Matches(of.Get(matcher.Name)) {
			return false
		}
	}
	return true
}

func (*querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (*querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (*querier) Close() error { return nil }

type seriesSet struct {
	series []storage.Series
	at     int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *seriesSet) At() storage.Series                { return s.series[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
