// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/terminal"
)

// preserved writes how many objects hold preserved data, and the age of this count.
func (w *writer) preserved(o *Overview) {
	counted := o.PreservedData
	if counted == nil {
		return
	}
	w.title("Preserved data")
	summary := fmt.Sprintf("  %d of %d objects hold preserved data, %d bytes", counted.Objects, counted.Seen, counted.Bytes)
	if counted.LargestObject != "" {
		summary += fmt.Sprintf("; %s holds %d of 262144 bytes", counted.LargestObject, counted.LargestBytes)
	}
	w.line("%s", summary)
	w.line("  counted %s ago by %s", ago(o.now.Sub(counted.Time.Time)), countedBy(counted))
	if counted.Outdated {
		w.line("  %s", w.page.Colors.In(terminal.Yellow, "rules or schemas have changed since"))
	}
	if !counted.Complete {
		w.line("  %s", w.page.Colors.In(terminal.Yellow, "not all objects were counted"))
	}
	for i := range counted.Versions {
		w.preservedOf(&counted.Versions[i])
	}
}

func countedBy(counted *v1alpha1.PreservedDataStatus) string {
	switch counted.Source {
	case v1alpha1.PreservedDataByMigration:
		return "run " + counted.Run
	case v1alpha1.PreservedDataByRetirement:
		return "the retirement of a version"
	}
	return "a sample"
}

func (w *writer) preservedOf(of *v1alpha1.PreservedVersion) {
	var fields []string
	for _, field := range of.Fields {
		text := fmt.Sprintf("%s (%d)", field.Path, field.Objects)
		if field.HasPlace {
			text += " has a place now"
		}
		fields = append(fields, text)
	}
	if of.MoreFields {
		fields = append(fields, "and others")
	}
	if of.Unreadable > 0 {
		fields = append(fields, fmt.Sprintf("text that cannot be read (%d)", of.Unreadable))
	}
	w.line("  of %s: %d objects, %d bytes: %s", of.Version, of.Objects, of.Bytes, terminal.OneLine(strings.Join(fields, ", ")))
}
