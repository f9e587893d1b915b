// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
)

// LatencySuite is the name of the suite of LatencyOptions.
const LatencySuite = "latency"

// LatencyOptions describe a measurement of webhooks through TLS.
type LatencyOptions struct {
	// Binary is the operator's, Bench the benchmark's own.
	Binary, Bench string
	// Idle is the number of kinds that a pod serves beside the one that is called.
	Idle int
	// Each is how long each subject is called in each case.
	Each time.Duration
}

// alone is the subject that ratios refer to.
const alone = "one kind alone"

// latencyRounds is the number of turns of each subject in each case.
const latencyRounds = 20

// callersAtOnce are the cases: how many requests are in flight.
var callersAtOnce = []int{1, 8}

// timed is a webhook that is measured.
type timed struct {
	name string
	*caller
	served *Served
	spans  []time.Duration
	spent  time.Duration
}

// Latency measures how long conversions take for clients of one kind: in a pod with that kind alone,
// beside idle kinds, and with controller-runtime.
func Latency(ctx context.Context, progress io.Writer, o LatencyOptions) (rows []measure.Row, err error) {
	dir, err := os.MkdirTemp("", "conversion-operator-latency-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b, err := newBody(shape{name: "kept", owner: true, large: true}, 1)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	all, err := o.start(ctx, dir, b)
	defer func() {
		cancel()
		for _, t := range all {
			t.served.Stop()
		}
	}()
	if err != nil {
		return nil, err
	}
	var subjects []subject
	for _, t := range all {
		subjects = append(subjects, subject{name: t.name, handler: t.caller, converts: true})
	}
	if err := agree(b, subjects); err != nil {
		return nil, fmt.Errorf("nothing is measured, as the subjects do not do the same: %w", err)
	}
	for _, callers := range callersAtOnce {
		fmt.Fprintf(progress, "%s: %d requests at once, %s for each of %d subjects\n", LatencySuite, callers, o.Each, len(all))
		measured, err := o.take(ctx, all, callers, b)
		if err != nil {
			return nil, err
		}
		rows = append(rows, measured...)
	}
	return rows, nil
}

// start starts all subjects. On error, it returns those that it started.
func (o LatencyOptions) start(ctx context.Context, dir string, b body) (all []*timed, err error) {
	groups := []string{group}
	for i := range o.Idle {
		groups = append(groups, fmt.Sprintf("idle-%03d.example.com", i))
	}
	for i, s := range []struct {
		name  string
		start func(dir string) (*Served, error)
	}{
		{alone, func(dir string) (*Served, error) { return StartOurs(ctx, o.Binary, dir, group) }},
		{fmt.Sprintf("one kind beside %d idle ones", o.Idle), func(dir string) (*Served, error) { return StartOurs(ctx, o.Binary, dir, groups...) }},
		{typed, func(dir string) (*Served, error) { return StartTyped(ctx, o.Bench, dir, group) }},
	} {
		own := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(own, 0o700); err != nil {
			return all, err
		}
		served, err := s.start(own)
		if err != nil {
			return all, err
		}
		all = append(all, &timed{name: s.name, served: served, caller: served.caller()})
		// Kinds become idle after they were called: what a pod makes at the first call exists.
		for i, url := range served.URLs {
			once := &caller{url, all[len(all)-1].client}
			if err := once.call(ctx, bytes.ReplaceAll(b.text, []byte(group), []byte(groups[i])), io.Discard); err != nil {
				return all, fmt.Errorf("%s, %s: %w", s.name, groups[i], err)
			}
		}
	}
	return all, nil
}

// take has all subjects called in turns, and returns the rows of a case.
func (o LatencyOptions) take(ctx context.Context, all []*timed, callers int, b body) ([]measure.Row, error) {
	for _, t := range all {
		t.spans, t.spent = nil, 0
	}
	for range latencyRounds {
		for _, t := range all {
			if err := t.turn(ctx, callers, o.Each/latencyRounds, b.text); err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
		}
	}
	var rows []measure.Row
	for _, t := range all {
		memory, err := t.served.Memory()
		if err != nil {
			return nil, err
		}
		for _, v := range []struct {
			value float64
			unit  string
		}{
			{measure.In(time.Microsecond, measure.Quantile(t.spans, 0.5)), "us, p50"},
			{measure.In(time.Microsecond, measure.Quantile(t.spans, 0.99)), "us, p99"},
			{measure.In(measure.Quantile(all[0].spans, 0.5), measure.Quantile(t.spans, 0.5)), "times p50 of the kind alone"},
			{measure.In(measure.Quantile(all[0].spans, 0.99), measure.Quantile(t.spans, 0.99)), "times p99 of the kind alone"},
			{float64(len(t.spans)) / t.spent.Seconds(), "requests/s"},
			{memory.Resident, "MiB resident"},
		} {
			rows = append(rows, measure.Row{Suite: LatencySuite, Case: fmt.Sprintf("%s, through TLS, %d at once", b.name, callers),
				Subject: t.name, Value: v.value, Unit: v.unit})
		}
	}
	return rows, nil
}

// turn has a number of callers call a subject for some time.
func (t *timed) turn(ctx context.Context, callers int, span time.Duration, text []byte) error {
	if err := t.call(ctx, text, io.Discard); err != nil { // the others had the processors until now
		return err
	}
	found := make([][]time.Duration, callers)
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for i := range found {
		group.Go(func() error {
			for now := time.Now(); now.Sub(began) < span; {
				if err := t.call(ctx, text, io.Discard); err != nil {
					return err
				}
				after := time.Now()
				found[i], now = append(found[i], after.Sub(now)), after
			}
			return nil
		})
	}
	err := group.Wait()
	t.spent += time.Since(began)
	for _, spans := range found {
		t.spans = append(t.spans, spans...)
	}
	return err
}
