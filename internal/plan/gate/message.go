// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What a condition message has room for: the first errors, the rest of which shows up
// as those are corrected; and the first fields of a list.
const (
	MaxErrors = 10
	MaxFields = 3
	// maxLine bounds each error and warning, in bytes: people read them in one line.
	maxLine = 600
)

// Errors is the first errors in one line.
func Errors(errors field.ErrorList) string {
	lines := make([]string, 0, MaxErrors+1)
	for i, err := range errors {
		if i == MaxErrors {
			lines = append(lines, fmt.Sprintf("and %d more", len(errors)-MaxErrors))
			break
		}
		lines = append(lines, Cut(err.Error()))
	}
	return strings.Join(lines, "; ")
}

// FirstOf is the first names, and how many there are besides.
func FirstOf(names []string, most int) string {
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Cut is a line that is not too long for a message.
func Cut(line string) string {
	if len(line) <= maxLine {
		return line
	}
	return strings.ToValidUTF8(line[:maxLine-len("...")], "") + "..."
}

// FieldManager names the field manager that wrote something; empty if it is unknown.
func FieldManager(name string) string {
	if name == "" {
		return "an unknown field manager"
	}
	return fmt.Sprintf("field manager %q", name)
}
