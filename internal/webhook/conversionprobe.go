// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// Before a CustomResourceDefinition depends on a converter, a real API server is
// asked to reach it: for an object of a kind of the operator's own, which every
// converter pod answers for besides the one that it has rules for. Both versions
// of that kind are the same, but for a mark of the ruleset that the call named. So
// the client that asked knows which webhook the API server has called.
const (
	// ProbeGroup is the API group of the kind.
	ProbeGroup = "probe.conversion-operator.io"
	// ProbeKind is the kind.
	ProbeKind = "ConversionProbe"
	// ProbeMark is the member of spec that the hash of the ruleset is written to.
	ProbeMark = "converter"
)

// probeConverter answers for the kind of the operator's own.
type probeConverter struct{ rulesetHash string }

// Answer implements Converter.
func (c probeConverter) Answer(dst, text []byte, toVersion string, _ func() bool) ([]byte, conversion.Outcome, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	object := map[string]any{}
	if err := decoder.Decode(&object); err != nil {
		return dst, conversion.Outcome{}, err
	}
	outcome := conversion.Outcome{Read: int(decoder.InputOffset())}
	apiVersion, _ := object["apiVersion"].(string)
	group, from, _ := strings.Cut(apiVersion, "/")
	if group != ProbeGroup || object["kind"] != ProbeKind {
		return dst, outcome, fmt.Errorf("it is a %v of %q, not a %s of %s", object["kind"], apiVersion, ProbeKind, ProbeGroup)
	}
	outcome.From = from
	object["apiVersion"] = ProbeGroup + "/" + toVersion
	if spec, ok := object["spec"].(map[string]any); ok {
		spec[ProbeMark] = c.rulesetHash
	}
	converted, err := json.Marshal(object)
	return append(dst, converted...), outcome, err
}

// isProbe reports whether a review asks for the kind of the operator's own.
func (r *review) isProbe() bool {
	return bytes.HasPrefix(r.desired, []byte(ProbeGroup+"/"))
}

// answerProbe lets the exchange answer for that kind.
func (x *exchange) answerProbe() {
	_, version, _ := strings.Cut(string(x.review.desired), "/")
	x.converter, x.target = probeConverter{x.ruleset}, x.handler.metrics.unknownTarget(version)
}
