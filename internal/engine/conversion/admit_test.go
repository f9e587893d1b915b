// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestAdmit checks that objects which cannot be converted are refused, unless they are being
// deleted.
func TestAdmit(t *testing.T) {
	c := shorteningOf(t, between(t, "b: {type: string}", "a: {type: string}, list: {type: array, items: {type: object, properties: {x: {type: string}}}}", ""), secret)
	large := `"a":"` + noise(300<<10) + `","list":[{"x":"` + noise(400<<10) + `"}]`
	err := c.Admit([]byte(named("v2", "", large)), nil)
	refused := wantError[*conversion.TooLargeError](t, "admission", err)
	want := fmt.Sprintf("the object cannot be converted to v1 as a whole: the fields that only version v2 has take %s, and all annotations together may take 256 KiB: make .a, .list smaller, or the object's other annotations",
		conversion.Kibibytes(refused.Bytes))
	expect.Equal(t, "error", want, err.Error())
	for metadata, admitted := range map[string]bool{
		`"deletionTimestamp":"2026-01-01T00:00:00Z",`:                                true,
		`"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":[ ],`:               true,
		`"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["example.com/a"],`: false,
		`"finalizers":[],`: false,
	} {
		object := strings.Replace(named("v2", "", large), `"metadata":{`, `"metadata":{`+metadata, 1)
		err := c.Admit([]byte(object), nil)
		expect.Equal(t, fmt.Sprintf("that this is admitted: %s: %v", metadata, err), admitted, err == nil)
	}
	for _, bad := range []string{`{`, `[]`, named("v2", "", ``) + `x`, strings.Replace(named("v2", "", ``), "Widget", "Gadget", 1)} {
		if err := c.Admit([]byte(bad), nil); err == nil {
			t.Errorf("%s is admitted", bad)
		}
	}
	// API servers may still call with a previous ruleset after a version was added.
	expect.NoError(t, c.Admit([]byte(named("v7", "", large)), nil))
	const elements = "m: {type: object, additionalProperties: {type: object, properties: {x: {type: string}}}}"
	c = shorteningOf(t, between(t, elements, strings.Replace(elements, "x:", "z: {type: string}, x:", 1), ""), secret)
	var members []string
	for i := range 5000 {
		members = append(members, fmt.Sprintf(`"%d":{"z":"1"}`, i))
	}
	if err := c.Admit([]byte(named("v2", "", `"m":{`+strings.Join(members, ",")+`}`)), func(int64) bool { return true }); !errors.Is(err, conversion.ErrStopped) {
		t.Errorf("stopped: got %v", err)
	}
}

// TestAdmitDeletion checks that a deletion which would store a truncated form is refused until the
// finalizers are gone.
func TestAdmitDeletion(t *testing.T) {
	c := shorteningOf(t, between(t, "b: {type: string}", "a: {type: string}", ""), secret)
	there, _ := shortenedTo(t, c, named("v2", "", `"a":"`+noise(500<<10)+`"`), "v1")
	held := strings.Replace(there, `"metadata":{`, `"metadata":{"finalizers":["example.com/a"],`, 1)
	for name, test := range map[string]struct {
		object          string
		waits, admitted bool
	}{
		"truncated":                {there, false, true},
		"truncated, and held":      {held, false, false},
		"truncated, and waits":     {there, true, false},
		"whole":                    {named("v1", "", `"b":"1"`), true, true},
		"a forged marker":          {withAnnotation(ofV1, "v2", `{"format":3,"omitted":{}}`, ``), true, true},
		"what no one can read":     {`{`, true, true},
		"an object without a name": {`{"apiVersion":"example.com/v1","kind":"Widget"}`, false, true},
	} {
		err := c.AdmitDeletion([]byte(test.object), test.waits, nil)
		expect.Equal(t, fmt.Sprintf("%s: that it is admitted: %v", name, err), test.admitted, err == nil)
	}
}
