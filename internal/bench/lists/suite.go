// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// Suite is the name of this suite.
const Suite = "lists"

const (
	pollPeriod = 100 * time.Millisecond
	patience   = time.Minute
)

// Each kind is listed in turn, so often, or less if that takes longer than enough.
const (
	mostRounds, fewestRounds = 9, 2
	enough                   = 15 * time.Second
)

// Options set the size of the measurement.
type Options struct {
	// Sizes of the objects in KiB, and numbers of objects in a list.
	Sizes, Counts []int
	// Most is the size of a list in MiB: larger ones are left out.
	Most int
	// Binary is the operator's, Bench the benchmark's own.
	Binary, Bench string
}

func (o Options) validate() error {
	for _, number := range slices.Concat(o.Sizes, o.Counts, []int{o.Most}) {
		if number < 1 {
			return fmt.Errorf("sizes and numbers of objects must be at least 1, one is %d", number)
		}
	}
	if len(o.Sizes) == 0 || len(o.Counts) == 0 {
		return errors.New("there must be a size and a number of objects")
	}
	return nil
}

// counts are the numbers of objects of a size in KiB, sorted.
func (o Options) counts(size int) []int {
	counts := slices.DeleteFunc(slices.Clone(o.Counts), func(count int) bool { return size*count > o.Most<<10 })
	slices.Sort(counts)
	return counts
}

// suite is one run, with one API server at a time.
type suite struct {
	Options
	dir      string
	progress io.Writer
	rows     []measure.Row

	server  *testenv.Server
	lister  *lister
	objects *scenarios.Fleet
	kinds   []*kind
}

// Run measures.
func Run(ctx context.Context, progress io.Writer, options Options) (rows []measure.Row, err error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "conversion-operator-lists-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &suite{Options: options, dir: dir, progress: progress}
	for _, size := range options.Sizes {
		if err := s.with(ctx, testenv.Options{NoWatchCache: true}, func() error { return s.curve(ctx, size) }); err != nil {
			return nil, err
		}
	}
	return s.rows, s.with(ctx, testenv.Options{}, func() error { return s.cached(ctx) })
}

func (s *suite) tell(format string, args ...any) {
	fmt.Fprintf(s.progress, Suite+": "+format+"\n", args...)
}

// with starts an API server and the webhooks, creates the CRDs, and measures.
func (s *suite) with(ctx context.Context, options testenv.Options, do func() error) (err error) {
	s.tell("starting a kube-apiserver")
	// All objects are stored three times, and more than etcd's default of 2 GiB if Most is raised.
	options.EtcdArguments = map[string]string{"quota-backend-bytes": fmt.Sprint(8 << 30)}
	if s.server, err = testenv.Start(options); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.server.Stop()) }()
	if s.lister, err = newLister(s.server.Kubeconfig); err != nil {
		return err
	}
	if s.objects, err = scenarios.NewFleet(s.server.Kubeconfig); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.dir, "")
	if err != nil {
		return err
	}
	s.kinds = s.Options.kinds()
	for _, k := range s.kinds {
		stop, err := k.define(ctx, s.server.Client, dir)
		if err != nil {
			return fmt.Errorf("define the kind of %s: %w", k.subject, err)
		}
		defer stop()
		if err := s.served(ctx, k); err != nil {
			return err
		}
	}
	return do()
}

// served waits until the API server serves both versions.
func (s *suite) served(ctx context.Context, k *kind) error {
	for _, version := range []string{storedVersion, otherVersion} {
		var last error
		if err := wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(ctx context.Context) (bool, error) {
			_, last = s.lister.list(ctx, k.resource(version), 1, io.Discard)
			return last == nil, nil
		}); err != nil {
			return errors.Join(err, last)
		}
	}
	return nil
}

// fill creates the objects of all kinds.
func (s *suite) fill(ctx context.Context, count, size int) error {
	s.tell("creating %d objects of %d KB, of %d kinds", count, size, len(s.kinds))
	for _, k := range s.kinds {
		if err := k.fill(ctx, s.objects, count, size<<10); err != nil {
			return err
		}
	}
	return nil
}

// curve measures lists of different length.
func (s *suite) curve(ctx context.Context, size int) error {
	counts := s.counts(size)
	if len(counts) == 0 {
		return nil
	}
	if err := s.fill(ctx, slices.Max(counts), size); err != nil {
		return err
	}
	for _, count := range counts {
		s.tell("listing %d objects of %d KB", count, size)
		measured, err := s.take(ctx, count)
		if err != nil {
			return err
		}
		s.add(fmt.Sprintf("LIST from etcd at the other version, %d KB x %d", size, count), count, measured)
	}
	return nil
}

// sample are the times of the lists of a kind, and the bytes of one.
type sample struct {
	subject string
	spans   []time.Duration
	bytes   int
}

// take lists all kinds in turns. The first list of each is checked, and not measured.
func (s *suite) take(ctx context.Context, count int) ([]sample, error) {
	samples := make([]sample, len(s.kinds))
	for i, k := range s.kinds {
		var text bytes.Buffer
		if _, err := s.lister.list(ctx, k.resource(otherVersion), count, &text); err != nil {
			return nil, err
		}
		if err := check(text.Bytes(), count, k.start != nil); err != nil {
			return nil, fmt.Errorf("%s: %w", k.subject, err)
		}
		samples[i] = sample{subject: k.subject, bytes: text.Len()}
	}
	began := time.Now()
	for round := 0; round < fewestRounds || round < mostRounds && time.Since(began) < enough; round++ {
		for i, k := range s.kinds {
			span, err := s.lister.list(ctx, k.resource(otherVersion), count, io.Discard)
			if err != nil {
				return nil, err
			}
			samples[i].spans = append(samples[i].spans, span)
		}
	}
	return samples, nil
}

// add adds the rows of a case, with the time that each conversion adds to strategy None.
func (s *suite) add(name string, count int, samples []sample) {
	added, fastest := map[string]time.Duration{}, map[string]time.Duration{}
	for _, each := range samples {
		fastest[each.subject] = measure.Quantile(each.spans, 0)
		added[each.subject] = fastest[each.subject] - fastest[none]
	}
	for _, each := range samples {
		row := func(value float64, unit string) {
			s.rows = append(s.rows, measure.Row{Suite: Suite, Case: name, Subject: each.subject, Value: value, Unit: unit})
		}
		row(float64(each.bytes)/float64(count)/1024, "KB/object")
		row(measure.In(time.Millisecond, fastest[each.subject]), "ms")
		row(measure.In(time.Millisecond, measure.Quantile(each.spans, 0.5)), "ms, median")
		row(measure.In(fastest[none], fastest[each.subject]), "times strategy None")
		if each.subject == none {
			continue
		}
		row(measure.In(time.Millisecond, added[each.subject]), "ms added")
		row(measure.In(time.Microsecond, added[each.subject])/float64(count), "us added/object")
		if added[each.subject] > 0 && added[typed] > 0 { // with a watch cache, the difference may be noise
			row(measure.In(added[each.subject], added[typed]), "controller-runtime adds times as much")
		}
	}
}
