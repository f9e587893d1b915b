// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// statusTest has two versions with the properties of their objects.
type statusTest struct {
	v1, v2, rules string
	warning       []string
	refusal       string
}

const exposes = ": every client that may update objects may change and delete these fields there, without the right to update status, and replacing an object at "

// statusTests have the warnings of a policy that allows preserved status, and the error of one that
// refuses it.
var statusTests = map[string]statusTest{
	"in both":      {"status: {type: object, properties: {a: {type: string}}}", "status: {type: object, properties: {a: {type: string}}}", "", nil, ""},
	"in neither":   {"a: {type: string}", "b: {type: string}", "", nil, ""},
	"moved":        {"status: {type: object, properties: {a: {type: string}}}", "status: {type: object, properties: {b: {type: string}}}", "{move: {from: .status.a, to: .status.b}}", nil, ""},
	"dropped":      {"status: {type: object, properties: {a: {type: string}}}", "status: {type: object}", "{drop: {from: .status.a}}", nil, ""},
	"another name": {"statuses: {type: string}", "a: {type: object, properties: {status: {type: string}}}", "", nil, ""},
	"of the hub": {
		"status: {type: object}", "status: {type: object, properties: {a: {type: string}, b: {type: string}}}", "",
		[]string{"status preserved in an annotation of objects at v1: v2:.status.a, v2:.status.b" + exposes + "v1 with an older manifest reverts or deletes them: give v1 the same fields"},
		"preserved at v1: v2:.status.a, v2:.status.b: give v1 the same fields",
	},
	"of the spoke": {
		"status: {type: object, properties: {a: {type: string}}}", "status: {type: object}", "",
		[]string{"status preserved in an annotation of objects at v2: v1:.status.a" + exposes + "v2 with an older manifest reverts or deletes them: give v2 the same fields"},
		"preserved at v2: v1:.status.a: give v2 the same fields",
	},
	"all of it": {
		"a: {type: string}", "a: {type: string}, status: {type: object, properties: {a: {type: string}}}", "",
		[]string{"status preserved in an annotation of objects at v1: v2:.status" + exposes + "v1 with an older manifest reverts or deletes them: give v1 the same fields"},
		"preserved at v1: v2:.status: give v1 the same fields",
	},
	"of each": {
		"status: {type: object, properties: {a: {type: string}}}", "status: {type: object, properties: {b: {type: string}}}", "",
		[]string{
			"status preserved in an annotation of objects at v1: v2:.status.b" + exposes + "v1 with an older manifest reverts or deletes them: give v1 the same fields",
			"status preserved in an annotation of objects at v2: v1:.status.a" + exposes + "v2 with an older manifest reverts or deletes them: give v2 the same fields",
		},
		"preserved at v1: v2:.status.b: give v1 the same fields; preserved at v2: v1:.status.a: give v2 the same fields",
	},
	"in elements": {
		"status: {type: object, properties: {l: {type: object, additionalProperties: {type: object, properties: {x: {type: string}}}}}}",
		"status: {type: object, properties: {l: {type: object, additionalProperties: {type: object, properties: {x: {type: string}, z: {type: string}}}}}}", "",
		[]string{"status preserved in an annotation of objects at v1: v2:.status.l[*].z" + exposes + "v1 with an older manifest reverts or deletes them: give v1 the same fields"},
		"preserved at v1: v2:.status.l[*].z: give v1 the same fields",
	},
	"by a default": {
		"status: {type: object}", "status: {type: object, properties: {a: {type: string}}}", "{default: {to: .status.a, value: x}}",
		[]string{"status preserved in an annotation of objects at v1: v2:.status.a" + exposes + "v1 with an older manifest reverts or deletes them: give v1 the same fields"},
		"preserved at v1: v2:.status.a: give v1 the same fields",
	},
	"values that a rule cannot express": {
		"status: {type: object, properties: {a: {type: string}}}", "status: {type: object, properties: {b: {type: integer, minimum: 0, maximum: 9}}}", "{cast: {from: .status.a, to: .status.b, as: Seconds}}",
		[]string{"status preserved in an annotation of objects at v2: v1:.status.a (values that spokes[0].rules[0] cannot express)" + exposes + "v2 with an older manifest reverts or deletes them: give v2 the same fields"},
		"preserved at v2: v1:.status.a (values that spokes[0].rules[0] cannot express): give v2 the same fields",
	},
}

func TestPreservedStatus(t *testing.T) {
	for name, test := range statusTests {
		t.Run(name, func(t *testing.T) {
			for _, action := range []string{"", "Allow"} {
				result := test.compile(t, action)
				converterOf(t, result)
				expect.Equal(t, fmt.Sprintf("warnings with preservedStatus %q", action), test.warning, result.Warnings)
			}
			want := test.refusal
			if want != "" {
				want = `spec.converter.declarative.preservedStatus: Invalid value: "Refuse": ` + want + "; or set preservedStatus to Allow"
			}
			result := test.compile(t, "Refuse")
			got := ""
			for _, err := range result.Errors {
				got += err.Error()
			}
			expect.Equal(t, "errors", want, got)
			expect.Equal(t, "that there is a ruleset", want == "", result.Ruleset != nil)
		})
	}
}

func (test *statusTest) compile(t *testing.T, action string) Result {
	t.Helper()
	crd := widgets(t, map[string]string{"v1": test.v1, "v2": test.v2})
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Served = true
	}
	rules := from[v1alpha1.DeclarativeConverter](t, "{hub: v2, spokes: [{version: v1, rules: ["+test.rules+"]}]}")
	rules.PreservedStatus = v1alpha1.PreservedStatusAction(action)
	return Compile(crd, rules)
}

// TestPreservedStatusOfSpokes checks that fields of several spokes are one warning.
func TestPreservedStatusOfSpokes(t *testing.T) {
	crd := widgets(t, map[string]string{
		"v1": "status: {type: object, properties: {a: {type: string}}}",
		"v2": "status: {type: object, properties: {b: {type: string}}}",
		"v3": "status: {type: object, properties: {c: {type: string}}}",
		"v4": "status: {type: object}",
	})
	result := Compile(crd, from[v1alpha1.DeclarativeConverter](t, "{hub: v4, spokes: [{version: v1}, {version: v2}, {version: v3}]}"))
	const begin, end = "status preserved in an annotation of objects at v4: ", "v4 with an older manifest reverts or deletes them: give v4 the same fields"
	want := []string{begin + "v1:.status.a, v2:.status.b, v3:.status.c" + exposes + end}
	expect.Equal(t, "result.Warnings", want, result.Warnings)
}

// TestPreservedStatusUnserved checks that there is no warning for a spoke that is not served, since
// no client writes there, but one for the hub, served or not, because its objects reach other
// spokes.
func TestPreservedStatusUnserved(t *testing.T) {
	crd := widgets(t, map[string]string{
		"v1": "status: {type: object, properties: {a: {type: string}}}",
		"v2": "status: {type: object, properties: {b: {type: string}}}",
	})
	rules := from[v1alpha1.DeclarativeConverter](t, "{hub: v2, spokes: [{version: v1}]}")
	want := []string{"status preserved in an annotation of objects at v2: v1:.status.a" + exposes + "v2 with an older manifest reverts or deletes them: give v2 the same fields"}
	expect.Equal(t, "warnings", want, Compile(crd, rules).Warnings)
}
