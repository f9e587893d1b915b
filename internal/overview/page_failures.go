// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/terminal"
)

// failures writes the conversions that failed recently.
func (w *writer) failures(o *Overview) {
	if len(o.ConversionFailures) == 0 {
		return
	}
	w.title("Failing conversions")
	rows := [][]string{{"  FROM", "TO", "CAUSE", "COUNT", "LAST", "EXAMPLE", "MESSAGE"}}
	for _, row := range o.ConversionFailures {
		rows = append(rows, []string{"  " + row.From, row.To, string(row.Cause), fmt.Sprint(row.Count), ago(o.now.Sub(row.LastTime.Time)) + " ago",
			terminal.OrDash(row.Object), terminal.OneLine(row.Message)})
	}
	w.table(rows)
}

// oversized writes the objects that do not fit into a version.
func (w *writer) oversized(o *Overview) {
	if o.OversizedObjects == nil {
		return
	}
	w.title(fmt.Sprintf("Objects that are too large for a version: %d", o.OversizedObjects.Objects))
	rows := [][]string{{"  OBJECT", "SHORTENED AT", "FIELDS OF", "BYTES", "FIELDS"}}
	for _, row := range o.OversizedObjects.Examples {
		rows = append(rows, []string{"  " + row.Object, row.Version, row.FieldsOf, fmt.Sprint(row.Bytes), terminal.OrDash(terminal.OneLine(strings.Join(row.Fields, ", ")))})
	}
	w.table(rows)
}

// failing returns the distinct causes of failed conversions.
func (o *Overview) failing() string {
	var causes []string
	for _, row := range o.ConversionFailures {
		if !slices.Contains(causes, string(row.Cause)) {
			causes = append(causes, string(row.Cause))
		}
	}
	return strings.Join(causes, ",")
}
