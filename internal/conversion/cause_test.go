// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestCauses: every way in which an object is refused has a cause, whatever is
// wrapped around the error.
func TestCauses(t *testing.T) {
	converter, err := NewConverter(&Plan{Group: "example.com", Kind: "CronTab", CRD: "crontabs.example.com", Hub: "v1", Versions: []string{"v1"}})
	if err != nil {
		t.Fatal(err)
	}
	const good = `{"apiVersion":"example.com/v1","kind":"CronTab"}`
	for name, test := range map[string]struct {
		object, to string
		want       Cause
	}{
		"cut off":               {`{"apiVersion":`, "v1", CauseInvalidJSON},
		"a name twice":          {`{"a":1,"a":1}`, "v1", CauseInvalidJSON},
		"nested for ever":       {strings.Repeat("[", 20_000), "v1", CauseInvalidJSON},
		"no object":             {`[]`, "v1", CauseWrongKind},
		"another kind":          {`{"apiVersion":"example.com/v1","kind":"Other"}`, "v1", CauseWrongKind},
		"another group":         {`{"apiVersion":"example.org/v1","kind":"CronTab"}`, "v1", CauseWrongKind},
		"from no known version": {`{"apiVersion":"example.com/v7","kind":"CronTab"}`, "v1", CauseUnknownVersion},
		"to no known version":   {good, "v7", CauseUnknownVersion},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := converter.Answer(nil, []byte(test.object), test.to, nil)
			if err == nil {
				t.Fatal("it is converted")
			}
			if got := CauseOf(fmt.Errorf("wrapped: %w", err)); got != test.want {
				t.Errorf("the cause of %q is %s, want %s", err, got, test.want)
			}
		})
	}
	if got := CauseOf(&OverflowError{}); got != CauseAnnotationsTooLarge {
		t.Errorf("the cause of an OverflowError is %s", got)
	}
	if got := CauseOf(errors.New("UnknownVersion: invalid JSON")); got != CauseOther {
		t.Errorf("the cause of any error is %s: its text was read", got)
	}
}
