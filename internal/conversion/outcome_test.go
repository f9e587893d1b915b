// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// TestCauses checks that each kind of refused object has a cause, even if the error is wrapped.
func TestCauses(t *testing.T) {
	converter, err := conversion.NewConverter(&conversion.Ruleset{Group: "example.com", Kind: "CronTab", CRD: "crontabs.example.com", Hub: "v1", Versions: []string{"v1"}})
	if err != nil {
		t.Fatal(err)
	}
	const good = `{"apiVersion":"example.com/v1","kind":"CronTab"}`
	for name, test := range map[string]struct {
		object, to string
		want       conversion.Cause
	}{
		"cut off":               {`{"apiVersion":`, "v1", conversion.CauseInvalidJSON},
		"a name twice":          {`{"a":1,"a":1}`, "v1", conversion.CauseInvalidJSON},
		"nested for ever":       {strings.Repeat("[", 20_000), "v1", conversion.CauseInvalidJSON},
		"no object":             {`[]`, "v1", conversion.CauseWrongKind},
		"another kind":          {`{"apiVersion":"example.com/v1","kind":"Other"}`, "v1", conversion.CauseWrongKind},
		"another group":         {`{"apiVersion":"example.org/v1","kind":"CronTab"}`, "v1", conversion.CauseWrongKind},
		"from no known version": {`{"apiVersion":"example.com/v7","kind":"CronTab"}`, "v1", conversion.CauseUnknownVersion},
		"to no known version":   {good, "v7", conversion.CauseUnknownVersion},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := converter.Answer(nil, []byte(test.object), test.to, nil)
			if err == nil {
				t.Fatal("it is converted")
			}
			if got := conversion.CauseOf(fmt.Errorf("wrapped: %w", err)); got != test.want {
				t.Errorf("the cause of %q is %s, want %s", err, got, test.want)
			}
		})
	}
	if got := conversion.CauseOf(&conversion.OverflowError{}); got != conversion.CauseAnnotationsTooLarge {
		t.Errorf("the cause of an OverflowError is %s", got)
	}
	if got := conversion.CauseOf(errors.New("UnknownVersion: invalid JSON")); got != conversion.CauseOther {
		t.Errorf("the cause of any error is %s: its text was read", got)
	}
}
