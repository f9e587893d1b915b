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
	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

// Page configures the text form of an Overview.
type Page struct {
	// Wide adds messages of passed gates, and nodes of pods.
	Wide   bool
	Colors terminal.Colors
}

// WritePage writes a page about one policy.
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

// writer holds the text of a page.
type writer struct {
	strings.Builder
	page Page
}

func (w *writer) line(format string, args ...any) {
	fmt.Fprintf(w, strings.TrimRight(format, " ")+"\n", args...)
}

// title starts a section of the page.
func (w *writer) title(text string) { w.line("\n%s", w.page.Colors.In(terminal.Bold, text)) }

func (w *writer) table(rows [][]string) {
	_ = terminal.WriteTable(w, rows) // writing to memory does not fail
}

// mark writes the status of a condition in color.
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
	if !slices.ContainsFunc(o.Gates, func(gate Gate) bool { return w.showsMessage(gate) && gate.Message == o.Message }) {
		ready += ": " + terminal.OneLine(o.Message)
	}
	w.line("Ready:      %s", ready)
	if crd := o.CRD; crd != nil {
		others := ""
		if stored := slices.DeleteFunc(slices.Clone(crd.StoredVersions), func(version string) bool { return version == crd.StorageVersion }); len(stored) > 0 {
			others = ", and may be stored at " + strings.Join(stored, ", ")
		}
		w.line("Storage:    objects are written at %s%s; conversion strategy %s", crd.StorageVersion, others, crd.Strategy)
		if crd.Writer != "" {
			w.line("Written by: %s", terminal.OneLine(strings.Replace(crd.Writer, " ", ", from ", 1)))
		}
	}
	switch {
	case o.Revision != "":
		w.line("Converter:  %s, ruleset %s", o.ConverterType, o.Revision)
	default:
		w.line("Converter:  %s", o.ConverterType)
	}
	if o.Paused {
		w.line("Paused:     changes wait (spec.paused)")
	}
	if o.Deleting {
		w.line("Deleting:   this policy is being deleted")
	}
}

// gates writes the gates in order. A message has its own line, because it may be long.
func (w *writer) gates(o *Overview) {
	if len(o.Gates) == 0 {
		return
	}
	w.title("Gates")
	for _, gate := range o.Gates {
		pad := strings.Repeat(" ", max(0, len("Unknown")-len(gate.Status)))
		line := fmt.Sprintf("  %s%s  %-20s  ", w.markGate(gate, o.Stalled), pad, gate.Type)
		if gate.Reason == v1alpha1.ReasonNotEvaluated {
			w.line("%s%s", line, w.page.Colors.In(terminal.Dim, terminal.OneLine(gate.Message)))
			continue
		}
		w.line("%s%-16s  for %s", line, gate.Reason, ago(o.now.Sub(gate.Since.Time)))
		if w.showsMessage(gate) {
			w.line("           %s", w.page.Colors.In(terminal.Dim, terminal.OneLine(gate.Message)))
		}
	}
}

// markGate writes the status of a gate in color: red if it blocks the policy.
func (w *writer) markGate(gate Gate, stalled bool) string {
	if slices.Contains(v1alpha1.Abnormal, gate.Type) {
		return w.page.Colors.In(terminal.Red, string(gate.Status))
	}
	return w.mark(gate.Status, stalled && gate.Reason != v1alpha1.ReasonNotEvaluated)
}

// showsMessage reports whether to write the message of a gate: for passed gates only if
// the page is wide.
func (w *writer) showsMessage(gate Gate) bool {
	passed := gate.Status == metav1.ConditionTrue && !slices.Contains(v1alpha1.Abnormal, gate.Type)
	return gate.Message != "" && (w.page.Wide || !passed)
}

func (w *writer) versions(o *Overview) {
	if len(o.Versions) == 0 || o.CRD == nil {
		return
	}
	w.title("Versions")
	rows := [][]string{{"  NAME", "SERVED", "STORAGE", "STORED", "REQUESTED", "UNSERVE", "REMOVE", "BLOCKED BY"}}
	for _, version := range o.Versions {
		blocker := "-"
		if len(version.BlockedBy) > 0 {
			blocker = string(version.BlockedBy[0].Reason) + ": " + terminal.OneLine(version.BlockedBy[0].Message)
		}
		rows = append(rows, []string{
			"  " + version.Name, yes(slices.Contains(o.CRD.ServedVersions, version.Name)), yes(o.CRD.StorageVersion == version.Name),
			yes(slices.Contains(o.CRD.StoredVersions, version.Name)), o.requested(version), safe(version.SafeToUnserve), safe(version.SafeToRemove), blocker,
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

// requested tells when clients last requested a version, or what is known besides.
func (o *Overview) requested(version v1alpha1.VersionStatus) string {
	for i := range o.Retirement {
		if last := o.Retirement[i].LastRequested; o.Retirement[i].Version == version.Name && last != nil {
			return ago(o.now.Sub(last.Time)) + " ago"
		}
	}
	return strings.ToLower(string(version.Requested))
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
		row := []string{"  " + pod.Name, yes(pod.Ready), terminal.OneLine(pod.State), fmt.Sprint(pod.Restarts), ago(o.now.Sub(pod.Started.Time))}
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
	if c := o.Certificate; c != nil && c.RotationTime != nil && c.Rotation != v1alpha1.RotationIdle {
		w.line("  the authority is being replaced: %s for %s", c.Rotation, ago(o.now.Sub(c.RotationTime.Time)))
	}
}

// left returns the time until a certificate expires.
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
