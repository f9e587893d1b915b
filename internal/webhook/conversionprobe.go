// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// Before a CustomResourceDefinition depends on a converter, the operator asks a real API server to
// reach it, with an object of the kind ConversionProbe. Every converter pod converts this kind
// besides its own. Both versions of it are identical, except that the converter adds the hash of
// the ruleset in the path of the call. That tells the operator which webhook the API server called.
const (
	// ProbeGroup is the API group of ConversionProbe.
	ProbeGroup = "probe.conversion-operator.io"
	// ProbeKind is the kind.
	ProbeKind = "ConversionProbe"
	// ProbeMark is the field of spec that receives the hash of the ruleset.
	ProbeMark = "converter"
)

// probeConverter converts ConversionProbes.
type probeConverter struct{ rulesetHash string }

// Answer implements Converter.
func (c probeConverter) Answer(dst, text []byte, toVersion string, _ func(memory int64) bool) ([]byte, conversion.Outcome, error) {
	if len(text) > maxProbeBytes {
		return dst, conversion.Outcome{}, fmt.Errorf("it has more than %d bytes", maxProbeBytes)
	}
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

// isProbe reports whether a review is for ConversionProbes.
func (r *review) isProbe() bool {
	return bytes.HasPrefix(r.desired, []byte(ProbeGroup+"/"))
}

// maxProbeBytes is more than the review of a ConversionProbe has. It is decoded, which takes memory.
const maxProbeBytes = firstBytes

// answerProbe makes the exchange convert ConversionProbes.
func (x *exchange) answerProbe() {
	_, version, _ := strings.Cut(string(x.review.desired), "/")
	x.probe = true
	x.converter, x.target = probeConverter{x.ruleset.Hash}, x.kind.metrics.unknownTarget(version)
}
