// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// evaluatesTrue evaluates an admission condition as an API server does.
func evaluatesTrue(t *testing.T, condition, operation, object, oldObject string) bool {
	t.Helper()
	base, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.NewExpressions)
	expect.NoError(t, err)
	env, err := base.Extend(cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("request", cel.DynType))
	expect.NoError(t, err)
	compiled, issues := env.Compile(condition)
	if issues.Err() != nil {
		t.Fatalf("%v in %s", issues.Err(), condition)
	}
	program, err := env.Program(compiled)
	expect.NoError(t, err)
	read := func(text string) (value any) {
		expect.NoError(t, json.Unmarshal([]byte(text), &value))
		return value
	}
	result, _, err := program.Eval(map[string]any{"object": read(object), "oldObject": read(oldObject), "request": map[string]any{"operation": operation}})
	if err != nil {
		t.Fatalf("%v of %s for %.300s", err, condition, object)
	}
	return result.Value() == true
}

// TestAdmissionCondition checks that the condition is true for objects that may be too large, and
// for no others.
func TestAdmissionCondition(t *testing.T) {
	const text, short = "{type: string}", "{type: string, maxLength: 100}"
	list := func(items string) string { return "{type: array, items: {type: object, properties: {" + items + "}}}" }
	large, half, small := `"`+strings.Repeat("x", 20000)+`"`, `"`+strings.Repeat("x", 10000)+`"`, `"x"`
	for name, test := range map[string]struct {
		v1, v2, rules string
		fields        string
		asks          bool
	}{
		"a short text":                    {"b: " + text, "a: " + text, "", `"a":` + small, false},
		"no text":                         {"b: " + text, "a: " + text, "", ``, false},
		"a long text":                     {"b: " + text, "a: " + text, "", `"a":` + large, true},
		"a long text of both":             {"b: " + text + ", x: " + text, "a: " + text + ", x: " + text, "", `"x":` + large, false},
		"a long text, deep":               {"b: " + text, `o: {type: object, properties: {"a-b": ` + text + "}}", "", `"o":{"a-b":` + large + `}`, true},
		"of bounded fields":               {"b: " + short, "a: " + short + ", n: {type: integer}", "", `"a":` + small, false},
		"an annotation of a rule":         {"b: " + text, "c: " + short, `{move: {from: .b, to: '.metadata.annotations["b"]'}}`, `"c":` + small, false},
		"anything":                        {"b: " + text, "a: {type: object, x-kubernetes-preserve-unknown-fields: true}", "", `"a":{}`, true},
		"a nullable text":                 {"b: " + text, "a: {type: string, nullable: true}", "", `"a":null`, true},
		"a list":                          {"b: " + text, "a: " + list("x: "+text), "", `"a":[]`, true},
		"elements of both":                {"l: " + list("x: "+text), "l: " + list("x: "+text+", z: "+text), "", `"l":[]`, true},
		"an object with a short text":     {"b: " + text, "o: {type: object, properties: {x: " + text + ", n: {type: integer}}}", "", `"o":{"x":` + small + `,"n":1}`, false},
		"an object with a long text":      {"b: " + text, "o: {type: object, properties: {x: " + text + ", n: {type: integer}}}", "", `"o":{"x":` + large + `}`, true},
		"several texts":                   {"b: " + text, "a: " + text + ", c: " + text, "", `"a":` + half + `,"c":` + half, true},
		"one of them":                     {"b: " + text, "a: " + text + ", c: " + text, "", `"a":` + half, false},
		"a map":                           {"b: " + text, "a: {type: object, additionalProperties: {type: integer}}", "", `"a":{}`, true},
		"texts that a rule cannot print":  {"h: " + text, "x: " + text + ", z: " + text, `{format: {from: .h, template: "{x}:{z}", to: {x: .x, z: .z}}}`, `"x":` + large, true},
		"short texts that it might print": {"h: " + text, "x: " + text + ", z: " + text, `{format: {from: .h, template: "{x}:{z}", to: {x: .x, z: .z}}}`, `"x":` + small, false},
	} {
		t.Run(name, func(t *testing.T) {
			condition := between(t, test.v1, test.v2, test.rules).AdmissionCondition
			expect.Equal(t, fmt.Sprintf("asks for %.100s by %s", test.fields, condition), test.asks, evaluatesTrue(t, condition, "UPDATE", widget(test.fields), "null"))
		})
	}
}

// TestAdmissionConditionOfAnnotations asks where they are large, or, by another
// condition, where they are marked.
func TestAdmissionConditionOfAnnotations(t *testing.T) {
	condition := between(t, "b: {type: string}", "a: {type: string}", "").AdmissionCondition
	many := make([]string, maxUncheckedCount+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":"x"`, i)
	}
	for annotations, want := range map[string]struct{ large, marked bool }{
		`"a":"b"`: {},
		`"a":"` + strings.Repeat("x", maxUncheckedAnnotations) + `"`: {large: true},
		strings.Join(many, ","): {true, true},
		`"conversion-operator.io/v1.widgets.example.com":"{\"format\":3,\"omitted\":{}}"`: {marked: true},
		`"example.com/note":"\"omitted\""`:                                                {},
	} {
		object := `{"apiVersion":"example.com/v2","metadata":{"annotations":{` + annotations + `}}}`
		expect.Equal(t, fmt.Sprintf("large for %.100s", annotations), want.large, evaluatesTrue(t, condition, "CREATE", object, "null"))
		for operation, objects := range map[string][2]string{"CREATE": {object, "null"}, "UPDATE": {object, object}, "DELETE": {"null", object}} {
			got := evaluatesTrue(t, MarkedCondition, operation, objects[0], objects[1])
			expect.Equal(t, fmt.Sprintf("%s: marked for %.100s", operation, annotations), want.marked, got)
		}
	}
	expect.Equal(t, "created without annotations: marked", false, evaluatesTrue(t, MarkedCondition, "CREATE", `{"metadata":{}}`, "null"))
	expect.Equal(t, "deleted without annotations: marked", false, evaluatesTrue(t, MarkedCondition, "DELETE", "null", `{"metadata":{}}`))
	expect.Equal(t, "where nothing is preserved", "", between(t, "a: {type: string}", "a: {type: string}", "").AdmissionCondition)
}

// widget encodes an object at v2.
func widget(fields string) string {
	object := `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"a"}`
	if fields != "" {
		object += "," + fields
	}
	return object + "}"
}

// TestAdmissionConditionOfNames has a text in an object that has another name at the hub.
func TestAdmissionConditionOfNames(t *testing.T) {
	const o = "{type: object, properties: {x: {type: string, maxLength: 3}, OWN: {type: string}}}"
	condition := between(t, "server: "+strings.Replace(o, "OWN", "old", 1), "listener: "+strings.Replace(o, "OWN", "new", 1), `{move: {from: .server, to: .listener}}`).AdmissionCondition
	large := `"` + strings.Repeat("x", 20000) + `"`
	for object, want := range map[string]bool{
		`"apiVersion":"example.com/v1","server":{"old":` + large + `}`:   true,
		`"apiVersion":"example.com/v1","server":{"old":"x"}`:             false,
		`"apiVersion":"example.com/v2","listener":{"new":` + large + `}`: true,
	} {
		got := evaluatesTrue(t, condition, "UPDATE", "{"+object+`,"metadata":{}}`, "null")
		expect.Equal(t, fmt.Sprintf("asks for %.100s by %s", object, condition), want, got)
	}
}
