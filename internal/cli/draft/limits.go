// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// maxTable is the number of pairs that a rule may have.
const maxTable = 128

// The limits of the schema of a ConversionPolicy, in characters. The compiler does not check them.
const (
	maxPath     = 1024
	maxTemplate = 1024
	maxText     = 253
)

var (
	// plainName is a name that a path has without quotes.
	plainName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*$`)
	// writtenPath is a path that a policy can have.
	writtenPath = regexp.MustCompile(`^\.[A-Za-z_$][A-Za-z0-9_$-]*((\.[A-Za-z_$][A-Za-z0-9_$-]*)|(\["[^"\\]+"\])|(\[\*\]))*$`)
)

// unwritable returns why API servers refuse a policy with the rule, empty if they do not.
func unwritable(rule *v1alpha1.Rule) string {
	spoke, hub := rule.Paths()
	for _, path := range slices.Concat(spoke, hub) {
		switch {
		case !writtenPath.MatchString(string(path)):
			return fmt.Sprintf("the path %s cannot be written in a policy: its first name must have only ASCII letters, digits, _, $ and -, and no name can have quotes or backslashes", path)
		case isLonger(string(path), maxPath):
			return fmt.Sprintf("a path has at most %d characters", maxPath)
		}
	}
	switch {
	case rule.Values != nil:
		return unwritableTable(rule.Values.Table)
	case rule.Format != nil && isLonger(rule.Format.Template, maxTemplate):
		return fmt.Sprintf("a template has at most %d characters", maxTemplate)
	case rule.Each != nil && isLonger(rule.Each.Key, maxText):
		return fmt.Sprintf("the name of a field in a rule has at most %d characters", maxText)
	}
	return ""
}

// unwritableTable is like unwritable for a table of values.
func unwritableTable(table []v1alpha1.ValuePair) string {
	if len(table) > maxTable {
		return fmt.Sprintf("a values rule has at most %d pairs, and there are %d", maxTable, len(table))
	}
	for _, pair := range table {
		if isLonger(pair.From, maxText) || isLonger(pair.To, maxText) {
			return fmt.Sprintf("a value in a values rule has at most %d characters", maxText)
		}
	}
	return ""
}

func isLonger(text string, limit int) bool { return utf8.RuneCountInString(text) > limit }
