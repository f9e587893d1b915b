// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/terminal"
)

// Page says how an Overview is written for people.
type Page struct {
	// Wide adds what gates say that are passed, and nodes of pods.
	Wide   bool
	Colors terminal.Colors
}

// WritePage writes all that there is to say of one policy.
func (o *Overview) WritePage(w io.Writer, page Page) error {
	p := &writer{page: page}
	p.head(o)
	p.gates(o)
	p.failures(o)
	p.oversized(o)
	p.migration(o)
	p.preserved(o)
	p.versions(o)
	p.converter(o)
	p.next(o)
	_, err := io.WriteString(w, p.String())
	return err
}

// writer collects a page.
type writer struct {
	strings.Builder
	page Page
}

func (w *writer) line(format string, args ...any) {
	fmt.Fprintf(w, strings.TrimRight(format, " ")+"\n", args...)
}

// title begins a part of the page.
func (w *writer) title(text string) { w.line("\n%s", w.page.Colors.In(terminal.Bold, text)) }

func (w *writer) table(rows [][]string) {
	_ = terminal.WriteTable(w, rows) // into memory
}

// mark colours a condition's status.
func (w *writer) mark(status metav1.ConditionStatus, bad bool) string {
	color := terminal.Yellow
	switch {
	case status == metav1.ConditionTrue:
		color = terminal.Green
	case bad:
		color = terminal.Red
	}
	return w.page.Colors.In(color, string(status))
}

func (w *writer) head(o *Overview) {
	w.line("%s", w.page.Colors.In(terminal.Bold, o.Name))
	ready := w.mark(o.Ready, o.Stalled) + ", " + o.Reason
	if !slices.ContainsFunc(o.Gates, func(gate Gate) bool { return w.tells(gate) && gate.Message == o.Message }) {
		ready += ": " + terminal.OneLine(o.Message)
	}
	w.line("Ready:      %s", ready)
	if crd := o.CRD; crd != nil {
		others := ""
		if stored := slices.DeleteFunc(slices.Clone(crd.StoredVersions), func(version string) bool { return version == crd.StorageVersion }); len(stored) > 0 {
			others = ", and may be stored at " + strings.Join(stored, ", ")
		}
		w.line("Storage:    objects are written at %s%s; conversion strategy %s", crd.StorageVersion, others, crd.Strategy)
	}
	switch {
	case o.Converter != nil:
		w.line("Converter:  %s, ruleset %s", o.ConverterKind, o.Converter.Revision)
	default:
		w.line("Converter:  %s", o.ConverterKind)
	}
	if o.Suspended {
		w.line("Suspended:  the operator changes nothing (spec.suspend)")
	}
	if o.Deleting {
		w.line("Deleting:   this policy is being deleted")
	}
}

// gates are written in order. What is said of a gate has a line of its own, for
// it may be long.
func (w *writer) gates(o *Overview) {
	if len(o.Gates) == 0 {
		return
	}
	w.title("Gates")
	for _, gate := range o.Gates {
		pad := strings.Repeat(" ", max(0, len("Unknown")-len(gate.Status)))
		line := fmt.Sprintf("  %s%s  %-20s  ", w.markGate(gate, o.Stalled), pad, gate.Type)
		if gate.Reason == v1alpha1.ReasonNotEvaluated {
			w.line("%s%s", line, w.page.Colors.In(terminal.Dim, gate.Message))
			continue
		}
		w.line("%s%-16s  for %s", line, gate.Reason, ago(o.now.Sub(gate.Since.Time)))
		if w.tells(gate) {
			w.line("           %s", w.page.Colors.In(terminal.Dim, terminal.OneLine(gate.Message)))
		}
	}
}

// markGate colours the status of a gate: red is what keeps the policy from being Ready.
func (w *writer) markGate(gate Gate, stalled bool) string {
	if slices.Contains(v1alpha1.Abnormal, gate.Type) {
		return w.page.Colors.In(terminal.Red, string(gate.Status))
	}
	return w.mark(gate.Status, stalled && gate.Reason != v1alpha1.ReasonNotEvaluated)
}

// tells reports whether the message of a gate is written: of those that are
// passed, people rarely want to know.
func (w *writer) tells(gate Gate) bool {
	passed := gate.Status == metav1.ConditionTrue && !slices.Contains(v1alpha1.Abnormal, gate.Type)
	return gate.Message != "" && (w.page.Wide || !passed)
}

func (w *writer) versions(o *Overview) {
	if len(o.Versions) == 0 {
		return
	}
	w.title("Versions")
	rows := [][]string{{"  NAME", "SERVED", "STORAGE", "STORED", "DEPRECATED", "REQUESTED", "UNSERVE", "REMOVE", "BLOCKED BY"}}
	for _, version := range o.Versions {
		kept := "-"
		if len(version.BlockedBy) > 0 {
			kept = string(version.BlockedBy[0].Reason) + ": " + terminal.OneLine(version.BlockedBy[0].Message)
		}
		rows = append(rows, []string{
			"  " + version.Name, yes(version.Served), yes(version.Storage), yes(version.Stored), yes(version.Deprecated),
			requested(version, o.now), safe(version.SafeToUnserve), safe(version.SafeToRemove), kept,
		})
	}
	w.table(rows)
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func safe(is bool) string {
	if is {
		return "safe"
	}
	return "no"
}

func requested(version v1alpha1.VersionStatus, now time.Time) string {
	if version.LastRequested == nil {
		return strings.ToLower(string(version.Requested))
	}
	return ago(now.Sub(version.LastRequested.Time)) + " ago"
}

func (w *writer) converter(o *Overview) {
	if o.Webhook == nil && len(o.Pods) == 0 && o.Certificate == nil {
		return
	}
	w.title("Converter")
	if o.Webhook != nil {
		w.line("  %d of %d are ready and verified", o.Webhook.Ready, o.Webhook.Desired)
	}
	rows := [][]string{{"  POD", "READY", "STATE", "RESTARTS", "AGE"}}
	if w.page.Wide {
		rows[0] = append(rows[0], "NODE")
	}
	for _, pod := range o.Pods {
		row := []string{"  " + pod.Name, yes(pod.Ready), pod.State, fmt.Sprint(pod.Restarts), ago(o.now.Sub(pod.Started.Time))}
		if w.page.Wide {
			row = append(row, terminal.OrDash(pod.Node))
		}
		rows = append(rows, row)
	}
	w.table(rows)
	if o.PodsUnknown != "" {
		w.line("  pods could not be read: %s", terminal.OneLine(o.PodsUnknown))
	}
	if c := o.Certificate; c != nil {
		w.line("  certificate until %s (%s), its authority until %s (%s)",
			c.NotAfter.UTC().Format(time.DateOnly), left(c.NotAfter, o.now), c.CANotAfter.UTC().Format(time.DateOnly), left(c.CANotAfter, o.now))
	}
	if r := o.Rotation; r != nil && r.State != v1alpha1.RotationIdle {
		w.line("  the authority is being replaced: %s for %s", r.State, ago(o.now.Sub(r.Since.Time)))
	}
}

// left is how long something still holds.
func left(end metav1.Time, now time.Time) string {
	if !end.After(now) {
		return "expired"
	}
	return "in " + ago(end.Sub(now))
}

func (w *writer) next(o *Overview) {
	if len(o.Next) == 0 {
		return
	}
	w.title("Next")
	for _, advice := range o.Next {
		w.line("  %s", advice.Text)
		if advice.Command != "" {
			w.line("    %s", w.page.Colors.In(terminal.Cyan, advice.Command))
		}
	}
}
