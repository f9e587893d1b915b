// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package measure times subjects that do the same work (rounds.go), reads what processes use
// (process.go), and prints the results as tables.
//
// The speed of a machine varies. So the package measures CPU time, which excludes other processes, on one
// core, so that it includes the garbage collection of a subject. The subjects take turns, in several
// rounds. The shortest round is the undisturbed time. Ratios between subjects of one run mean more than
// times.
package measure

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// Results are the numbers of a suite: measured values of subjects in cases.
type Results struct {
	// Progress receives a line for each step of the suite.
	Progress io.Writer
	rows     []row
}

type row struct {
	name, subject string
	value         float64
	unit          string
}

// Tell says what the suite does now.
func (r *Results) Tell(format string, args ...any) { fmt.Fprintf(r.Progress, format+"\n", args...) }

// Add adds a number. The unit has its meaning, such as us/object, and is unique for a subject in a case.
func (r *Results) Add(name, subject string, value float64, unit string) {
	r.rows = append(r.rows, row{name, subject, value, unit})
}

// AddSpans adds quantiles of times, in seconds.
func (r *Results) AddSpans(name, subject string, spans []time.Duration) {
	for _, q := range []struct {
		part float64
		unit string
	}{{0.5, "s, p50"}, {0.95, "s, p95"}, {1, "s, longest"}} {
		r.Add(name, subject, Quantile(spans, q.part).Seconds(), q.unit)
	}
}

// AddUsage adds the memory of processes of one program.
func (r *Results) AddUsage(name, subject string, u Usage) {
	r.Add(name, subject, float64(u.Processes), "processes")
	r.Add(name, subject, u.Resident, "MiB resident, largest")
	r.Add(name, subject, u.Anonymous, "MiB of it not from files")
	r.Add(name, subject, u.Peak, "MiB at the peak, largest")
}

// In returns a time as a number of units.
func In(unit, span time.Duration) float64 { return float64(span) / float64(unit) }

// Quantile returns the shortest of the spans that at least a part of them does not exceed: 0.5 for
// the median, 0.99 for the 99th percentile. There must be one.
func Quantile(spans []time.Duration, part float64) time.Duration {
	sorted := slices.Sorted(slices.Values(spans))
	rank := int(math.Ceil(part * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// Print prints a table per case, with a line per subject and a column per unit, in the order in which
// they were added.
func (r *Results) Print(to io.Writer) error {
	for _, name := range distinct(r.rows, func(r row) string { return r.name }) {
		rows := slices.DeleteFunc(slices.Clone(r.rows), func(r row) bool { return r.name != name })
		fmt.Fprintf(to, "\n%s\n", name)
		units := distinct(rows, func(r row) string { return r.unit })
		cells := map[[2]string]string{}
		for _, row := range rows {
			cells[[2]string{row.subject, row.unit}] = number(row.value)
		}
		table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
		for _, unit := range units {
			fmt.Fprintf(table, "%s\t", unit)
		}
		fmt.Fprintln(table)
		for _, subject := range distinct(rows, func(r row) string { return r.subject }) {
			for _, unit := range units {
				fmt.Fprintf(table, "%s\t", cells[[2]string{subject, unit}])
			}
			fmt.Fprintf(table, "  %s\n", subject)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// distinct returns the values of a field, each once.
func distinct(rows []row, of func(row) string) (values []string) {
	for _, row := range rows {
		if !slices.Contains(values, of(row)) {
			values = append(values, of(row))
		}
	}
	return values
}

// number formats about three digits, as more would be noise.
func number(value float64) string {
	digits := 0
	for limit := 100.0; value < limit && digits < 2; limit /= 10 {
		digits++
	}
	return strconv.FormatFloat(value, 'f', digits, 64)
}
