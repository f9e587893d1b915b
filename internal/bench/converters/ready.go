// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
)

// Leaves is the number of fields of a large ruleset.
const Leaves = 1000

// Ready measures how soon a converter is ready with a ruleset of that many leaf fields, and the
// memory of its idle process, which is the serve command of binary.
func Ready(ctx context.Context, progress io.Writer, binary string, leaves int, each time.Duration) ([]measure.Row, error) {
	crd, rules := largeKind(leaves)
	plan, err := compileRules(crd, rules)
	if err != nil {
		return nil, err
	}
	text, err := plan.Marshal()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("ready with %d leaves", leaves)
	fmt.Fprintf(progress, "%s: %s, a plan of %d bytes\n", Suite, name, len(text))
	samples := measure.Run([]measure.Subject{
		{Name: "compile the rules, in the manager", Call: func() { _ = compile.Compile(crd, rules) }},
		{Name: "load the plan, in the converter", Call: func() { load(text) }},
	}, each)
	var rows []measure.Row
	add := func(subject string, value float64, unit string) {
		rows = append(rows, measure.Row{Suite: Suite, Case: name, Subject: subject, Value: value, Unit: unit})
	}
	for _, sample := range samples {
		add(sample.Subject, measure.In(time.Millisecond, sample.Best), "ms")
	}
	idle, err := serve(ctx, binary, text)
	if err != nil {
		return nil, fmt.Errorf("measuring %s serve: %w", binary, err)
	}
	const process = "the converter's process"
	add(process, measure.In(time.Millisecond, idle.ready), "ms")
	add(process, idle.memory.Resident, "MiB resident")
	add(process, idle.memory.Anonymous, "MiB of it anonymous")
	return rows, nil
}

// load does the work of a converter before it listens.
func load(text []byte) {
	plan, err := conversion.Load(text)
	if err == nil {
		_, err = conversion.NewConverter(plan)
	}
	if err != nil {
		panic(err) // The plan was compiled by us, just now.
	}
}
