// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migrations

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// Suite is the name of this suite.
const Suite = "migration"

// Options set the size of the measurement.
type Options struct {
	// Objects is the number of objects of each kind.
	Objects int
	// Alone is the time for which another client is measured before objects are rewritten.
	Alone time.Duration
	// Setup selects setups by the beginning of their names.
	Setup string
	// Binary is the operator's binary.
	Binary string
}

// setups are the kinds of conversion that migrations are measured with.
var setups = []setup{
	{name: "strategy None", group: "none.example.com"},
	{name: "rules, in converter pods", group: "rules.example.com", declarative: true},
}

// suite is one run.
type suite struct {
	Options
	*cluster
	name     string
	progress io.Writer
	rows     []measure.Row
}

// Run installs the operator in the cluster of the current kubeconfig, and measures. It does not
// clean up.
func Run(ctx context.Context, progress io.Writer, options Options) ([]measure.Row, error) {
	chosen := slices.DeleteFunc(slices.Clone(setups), func(s setup) bool { return !strings.HasPrefix(s.name, options.Setup) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("there is no setup whose name begins with %q", options.Setup)
	}
	s, err := install(ctx, Suite, progress, options)
	if err != nil {
		return nil, err
	}
	for _, setup := range chosen {
		if err := s.measure(ctx, setup); err != nil {
			return nil, fmt.Errorf("%s: %w", setup.name, err)
		}
	}
	return s.rows, nil
}

func install(ctx context.Context, name string, progress io.Writer, options Options) (*suite, error) {
	dir, err := scenarios.Root()
	if err != nil {
		return nil, err
	}
	c, err := connect()
	if err != nil {
		return nil, err
	}
	s := &suite{Options: options, cluster: c, name: name, progress: progress}
	s.tell("installing the operator")
	return s, scenarios.Install(ctx, scenarios.NewTeller(io.Discard, dir))
}

func (r *suite) tell(format string, args ...any) {
	fmt.Fprintf(r.progress, r.name+": "+format+"\n", args...)
}

func (r *suite) add(s setup, subject string, value float64, unit string) {
	r.rows = append(r.rows, measure.Row{Suite: r.name, Case: fmt.Sprintf("%d objects, %s", r.Objects, s.name),
		Subject: subject, Value: value, Unit: unit})
}

func (r *suite) measure(ctx context.Context, s setup) error {
	r.tell("%s: creating %d objects", s.name, r.Objects)
	if err := r.prepare(ctx, s, r.Objects); err != nil {
		return err
	}
	rates := map[string]float64{}
	all := r.subjects(r.Binary)
	for _, subject := range all {
		if err := r.toMigrate(ctx, s, r.Objects); err != nil {
			return err
		}
		var err error
		if rates[subject.name], err = r.turn(ctx, s, subject); err != nil {
			return fmt.Errorf("%s: %w", subject.name, err)
		}
		if subject.name == all[0].name {
			again := subject
			again.name += ", again"
			if _, err := r.turn(ctx, s, again); err != nil {
				return fmt.Errorf("%s: %w", again.name, err)
			}
		}
	}
	for _, subject := range all[1:] {
		r.add(s, subject.name, rates[all[0].name]/rates[subject.name], "times slower than ours")
	}
	return r.beside(ctx, s)
}

// turn measures one subject, and verifies its result.
func (r *suite) turn(ctx context.Context, s setup, subject subject) (float64, error) {
	began := time.Now()
	memory, err := subject.run(ctx, s)
	if err != nil {
		return 0, err
	}
	rate := float64(r.Objects) / time.Since(began).Seconds()
	r.tell("%s: %s: %.0f objects/s", s.name, subject.name, rate)
	r.add(s, subject.name, rate, "objects/s")
	if memory.Peak > 0 {
		r.add(s, subject.name, memory.Peak, "MiB at the peak")
		r.add(s, subject.name, memory.Anonymous, "MiB of it anonymous")
	}
	return rate, r.storedAt(ctx, s, newVersion, r.Objects)
}
