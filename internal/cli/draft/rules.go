// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

func pathOf(f *field) v1alpha1.Path { return v1alpha1.Path(f.String()) }

func moveOf(spoke, hub *field) v1alpha1.Rule {
	return v1alpha1.Rule{Move: &v1alpha1.MoveRule{From: pathOf(spoke), To: pathOf(hub)}}
}

func eachOf(spoke, hub *field, key string) v1alpha1.Rule {
	return v1alpha1.Rule{Each: &v1alpha1.EachRule{From: pathOf(spoke), To: pathOf(hub), Key: key}}
}

func defaultRule(f *field, ofHub bool, rule *v1alpha1.DefaultRule, why string) *hypothesis {
	h := &hypothesis{rule: v1alpha1.Rule{Default: rule}, score: 0.8, why: []string{why}}
	if ofHub {
		rule.To, h.hub = pathOf(f), []*field{f}
	} else {
		rule.From, h.spoke = pathOf(f), []*field{f}
	}
	return h
}

// ruleFor returns the rule for two fields that correspond, and that for their elements, or why the schemas do not tell
// which one.
func ruleFor(spoke, hub *field, renames bool) (rule v1alpha1.Rule, elements *v1alpha1.Rule, problem string) {
	if rule, elements = ruleForElements(spoke, hub); elements == nil {
		rule, problem = ruleForWhole(spoke, hub, renames)
	}
	return rule, elements, problem
}

func ruleForWhole(spoke, hub *field, renames bool) (rule v1alpha1.Rule, problem string) {
	switch {
	case spoke.isScalar() && hub.isScalar() && len(spoke.schema.Enum) > 0 && len(hub.schema.Enum) > 0:
		return ruleForEnums(spoke, hub)
	case spoke.shape == hub.shape, renames, isWideScalar(spoke.kind, hub.kind):
		return moveOf(spoke, hub), ""
	case castable(spoke, hub) && separatorIn(spoke) != "", castable(hub, spoke) && separatorIn(hub) != "":
		return ruleForCast(spoke, hub)
	case wraps(spoke, hub) && isPluralText(hub), wraps(hub, spoke) && isPluralText(spoke):
		return v1alpha1.Rule{}, "the schemas do not tell whether the string has one element or several: write an each rule, or cast as List"
	case wraps(spoke, hub), wraps(hub, spoke):
		return eachOf(spoke, hub, ""), ""
	case indexedBy(spoke, hub)+indexedBy(hub, spoke) != "": // a field is the list, and the other one the map
		return eachOf(spoke, hub, indexedBy(spoke, hub)+indexedBy(hub, spoke)), ""
	case len(spoke.schema.Enum)+len(hub.schema.Enum) > 0:
		return ruleForEnums(spoke, hub)
	case castable(spoke, hub), castable(hub, spoke):
		return ruleForCast(spoke, hub)
	}
	return ruleForEnums(spoke, hub)
}

// units are words in the name of a number that tell what it counts.
var units = map[string]string{"mib": "Mi", "mi": "Mi", "gib": "Gi", "gi": "Gi", "kib": "Ki", "ki": "Ki", "tib": "Ti", "ti": "Ti", "millicore": "m", "millicpu": "m"}

// ruleForCast reads from the schemas how the string is written.
func ruleForCast(spoke, hub *field) (v1alpha1.Rule, string) {
	cast := &v1alpha1.CastRule{From: pathOf(spoke), To: pathOf(hub)}
	text, other := spoke, hub
	if !castable(spoke, hub) {
		text, other = hub, spoke
	}
	problem := "the schemas do not tell how the string is written: cast as Integer, Number, Seconds, Milliseconds, Timestamp or Quantity"
	switch castKind(other) {
	case listOfStrings:
		cast.As, cast.Separator = v1alpha1.CastList, separatorIn(text)
	case "boolean":
		if isBoolean(text) {
			cast.As = v1alpha1.CastBoolean
		}
		problem = "the schemas do not tell how the string is written: cast as Boolean if it is true or false, or write a values rule"
	case "integer":
		castAsInteger(cast, text, other)
	}
	if cast.As == "" {
		return v1alpha1.Rule{}, problem
	}
	return v1alpha1.Rule{Cast: cast}, ""
}

// isPluralText reports whether a string has a name in the plural.
func isPluralText(f *field) bool {
	all := split(f.name())
	return f.kind == "string" && len(all) > 0 && stem(all[len(all)-1]) != all[len(all)-1]
}

// isBoolean reports whether the schema of a string shows that it is true or false.
func isBoolean(text *field) bool {
	if text.schema.Default != nil && slices.Contains([]string{`"true"`, `"false"`}, string(text.schema.Default.Raw)) {
		return true
	}
	return slices.Contains([]string{"^(true|false)$", "^true$|^false$", "^(false|true)$"}, text.schema.Pattern)
}

// castAsInteger sets how the string is written if that is known.
func castAsInteger(cast *v1alpha1.CastRule, text, number *field) {
	others := split(text.name())
	for _, word := range split(number.name()) {
		word = stem(word)
		switch {
		case text.schema.Format == "date-time":
			cast.As = v1alpha1.CastTimestamp
		case slices.Contains(others, word):
		case word == "second" || word == "sec":
			cast.As = v1alpha1.CastSeconds
		case word == "millisecond" || word == "milli" || word == "ms":
			cast.As = v1alpha1.CastMilliseconds
		case units[word] != "":
			cast.As, cast.Unit = v1alpha1.CastQuantity, units[word]
		}
	}
	if slices.Contains([]string{"^[0-9]+$", "^\\d+$", "^[0-9]*$"}, text.schema.Pattern) && cast.As == "" {
		cast.As = v1alpha1.CastInteger
	}
}

// ruleForEnums pairs the values of two enums, or of an enum and a boolean, if there is one way to.
func ruleForEnums(spoke, hub *field) (v1alpha1.Rule, string) {
	left, right := listedValues(spoke), listedValues(hub)
	if spoke.kind == hub.kind && (isSubset(left, right) || isSubset(right, left)) {
		return moveOf(spoke, hub), ""
	}
	var table []v1alpha1.ValuePair
	for _, from := range left {
		var partners []string
		for _, to := range right {
			if from == to || meaning(from) == meaning(to) {
				partners = append(partners, to)
			}
		}
		if len(partners) == 1 {
			table = append(table, v1alpha1.ValuePair{From: from, To: partners[0]})
		}
	}
	to := map[string]bool{}
	for _, pair := range table {
		to[pair.To] = true
	}
	if len(table) == 0 || len(table) != len(left) || len(to) != len(right) || len(left) != len(right) {
		return v1alpha1.Rule{}, "the schemas do not tell which values correspond: write a values rule"
	}
	if why := unwritableTable(table); why != "" {
		return v1alpha1.Rule{}, why
	}
	return v1alpha1.Rule{Values: &v1alpha1.ValuesRule{From: pathOf(spoke), To: pathOf(hub), Table: table}}, ""
}

// listedValues returns the values that a schema allows as text of a table, nil if it does not list them.
func listedValues(f *field) (values []string) {
	if f.kind == "boolean" {
		return []string{"true", "false"}
	}
	for _, value := range f.schema.Enum {
		values = append(values, plain(strings.TrimSpace(string(value.Raw))))
	}
	slices.Sort(values)
	return values
}

func isSubset(of, all []string) bool {
	return len(of) > 0 && !slices.ContainsFunc(of, func(value string) bool { return !slices.Contains(all, value) })
}

var notAlphanumeric = regexp.MustCompile("[^a-z0-9]+")

// meaning is the same for values that differ in notation only.
func meaning(value string) string {
	text := notAlphanumeric.ReplaceAllString(strings.ToLower(value), "")
	switch text {
	case "enabled", "enable", "on", "yes":
		return "true"
	case "disabled", "disable", "off", "no":
		return "false"
	}
	return text
}

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
