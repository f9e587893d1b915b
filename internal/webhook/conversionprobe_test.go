// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestConversionProbe checks that a pod converts ConversionProbes besides its own kind, and marks
// them with the hash of the ruleset.
func TestConversionProbe(t *testing.T) {
	handler := NewHandler([]Ruleset{labelled("abc")}, HandlerOptions{Log: logr.Discard()})
	const (
		object = `{"apiVersion":"probe.conversion-operator.io/v1","kind":"ConversionProbe","metadata":{"name":"a","uid":"1"},"spec":{"number":9007199254740993}}`
		failed = `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"u","convertedObjects":[],"result":{"status":"Failure","message":"%"}}}`
	)
	cases := map[string]struct {
		ruleset, desired, objects string
		code                      int
		want                      string
	}{
		"it is marked": {"abc", "probe.conversion-operator.io/v2", object, 200,
			`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"u","convertedObjects":[{"apiVersion":"probe.conversion-operator.io/v2","kind":"ConversionProbe","metadata":{"name":"a","uid":"1"},"spec":{"converter":"abc","number":9007199254740993}}],"result":{"status":"Success"}}}`},
		"without a spec": {"abc", "probe.conversion-operator.io/v2", `{"apiVersion":"probe.conversion-operator.io/v1","kind":"ConversionProbe","metadata":{}}`, 200,
			`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"u","convertedObjects":[{"apiVersion":"probe.conversion-operator.io/v2","kind":"ConversionProbe","metadata":{}}],"result":{"status":"Success"}}}`},
		"another kind": {"abc", "probe.conversion-operator.io/v2", `{"apiVersion":"probe.conversion-operator.io/v1","kind":"Other","metadata":{"name":"a"}}`, 200,
			strings.Replace(failed, "%", `a cannot be converted from v1 to v2: it is a Other of \"probe.conversion-operator.io/v1\", not a ConversionProbe of probe.conversion-operator.io`, 1)},
		"a ruleset that the pod has not": {"other", "probe.conversion-operator.io/v2", object, 503, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			body := v1Review(`{"uid":"u","desiredAPIVersion":"` + c.desired + `","objects":[` + c.objects + `]}`)
			recorder := postTo(handler, ConvertPath+"/"+c.ruleset, body)
			expect.Equal(t, "status", c.code, recorder.Code)
			if c.want != "" {
				expect.Equal(t, "answer", c.want, recorder.Body.String())
			}
		})
	}
}
