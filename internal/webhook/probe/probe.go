// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// Target is a converter pod and its expected behaviour.
type Target struct {
	// Address is the IP address and port of the pod.
	Address string
	// CABundle is the caBundle of the CustomResourceDefinition, in PEM. No other certificate is
	// trusted.
	CABundle []byte
	// ServerName is the name that the certificate must be valid for,
	// <service>.<namespace>.svc.
	ServerName string
	// CRD is the name of the CustomResourceDefinition whose failed conversions to read; those of all
	// if it is empty. A pod may convert for several.
	CRD string
	// RulesetHash is the ruleset that the pod must serve, and that converts the canary objects. Without
	// one, the pod must only serve its certificate and say which rulesets it has.
	RulesetHash string
	// APIVersion is any group and version of the kind. Without canary objects, the probe sends a
	// review without objects for it.
	APIVersion string
	// Canaries are converted in order.
	Canaries []Canary
	// FailuresToken authorizes the probe to read the failed conversions of the pod. If it is empty,
	// the probe does not read them.
	FailuresToken string
}

// Canary is an object to convert, and the expected result.
type Canary struct {
	// DesiredAPIVersion is the group and version to convert to.
	DesiredAPIVersion string
	// Object is converted.
	Object []byte
	// Expected is the expected object. The order of members does not matter, and numbers are
	// compared by their exact value.
	Expected []byte
}

// Canaries returns a canary object for each version pair, with the expected result of its
// conversion.
func Canaries(rules *conversion.Ruleset) ([]Canary, error) {
	converter, err := conversion.NewConverter(rules)
	if err != nil {
		return nil, err
	}
	var canaries []Canary
	for _, pair := range rules.Pairs() {
		object := converter.Canary(pair[0], pair[1])
		expected, err := converter.Convert(nil, object, pair[1])
		if err != nil {
			return nil, fmt.Errorf("convert a canary from %s to %s: %w", pair[0], pair[1], err)
		}
		canaries = append(canaries, Canary{
			DesiredAPIVersion: rules.Group + "/" + pair[1], Object: object, Expected: expected})
	}
	return canaries, nil
}

// Result is what the pod reported. After an error it has what was known by then.
type Result struct {
	// NotAfter is when the serving certificate expires.
	NotAfter time.Time
	// RulesetHashes are the rulesets that the pod serves, and RulesetFailures is why it cannot serve
	// others, by hash.
	RulesetHashes   []string
	RulesetFailures map[string]string
	// Failures are the failed conversions of the pod; nil if it did not report them.
	Failures *webhook.Failures
}

// Pod probes one pod until ctx ends. The error is an *Error, or that of ctx if it was cancelled.
func Pod(ctx context.Context, target Target) (Result, error) {
	var result Result
	connection, err := dial(ctx, &target)
	if err != nil {
		return result, err
	}
	defer connection.close()
	result.NotAfter = connection.notAfter

	rulesets, err := connection.rulesets(ctx)
	if err != nil {
		return result, err
	}
	result.RulesetHashes, result.RulesetFailures = rulesets.Hashes, rulesets.Failed
	if target.RulesetHash == "" {
		return result, nil
	}
	if reason, failed := rulesets.Failed[target.RulesetHash]; failed {
		return result, failf(ReasonWrongRuleset, "the pod cannot serve ruleset %s: %s", quote(target.RulesetHash), bounded(reason))
	}
	if !slices.Contains(result.RulesetHashes, target.RulesetHash) {
		return result, failf(ReasonWrongRuleset, "the pod serves ruleset %s, not %s", quote(strings.Join(result.RulesetHashes, ", ")), quote(target.RulesetHash))
	}
	if err := connection.convertAll(ctx, &target); err != nil {
		return result, err
	}
	result.Failures = connection.failures(ctx, &target)
	return result, ctx.Err()
}

func (c *connection) rulesets(ctx context.Context) (rulesets webhook.Rulesets, err error) {
	body, err := c.call(ctx, http.MethodGet, webhook.RulesetsPath, nil)
	if err != nil {
		return rulesets, err
	}
	if err := json.Unmarshal(body, &rulesets); err != nil || rulesets.Hashes == nil {
		return rulesets, failf(ReasonUnexpectedAnswer, "GET %s answered %s, not the rulesets that the pod serves", webhook.RulesetsPath, quote(string(body)))
	}
	return rulesets, nil
}

func (c *connection) convertAll(ctx context.Context, target *Target) error {
	if len(target.Canaries) == 0 {
		_, err := c.review(ctx, target.APIVersion, nil)
		return err
	}
	for i := range target.Canaries {
		if err := c.convert(ctx, &target.Canaries[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *connection) convert(ctx context.Context, canary *Canary) error {
	original, err := parseObject(canary.Object)
	if err != nil {
		return fmt.Errorf("the canary to %s is not an object: %w", canary.DesiredAPIVersion, err)
	}
	objects, err := c.review(ctx, canary.DesiredAPIVersion, [][]byte{canary.Object})
	if err != nil {
		return err
	}
	converted, err := checkObject(original, objects[0], canary.DesiredAPIVersion)
	if err != nil {
		return canaryFailed(original.GetAPIVersion(), canary.DesiredAPIVersion, "the answer is not acceptable to an API server: %s", err)
	}
	expected, err := preserved.Decode(canary.Expected)
	if err != nil {
		return fmt.Errorf("the answer expected of the canary to %s is not JSON: %w", canary.DesiredAPIVersion, err)
	}
	if found := difference("", expected, converted, false); found != "" {
		return canaryFailed(original.GetAPIVersion(), canary.DesiredAPIVersion, "the answer is not the one expected: %s", found)
	}
	return nil
}

func canaryFailed(from, to, format string, args ...any) *Error {
	return failf(ReasonCanaryFailed, "converting a canary from %s to %s: %s", from, to, bounded(fmt.Sprintf(format, args...)))
}

func quote(text string) string {
	return fmt.Sprintf("%q", bounded(text))
}

// bounded truncates a text of a pod to a length that fits into a condition.
func bounded(text string) string {
	const limit = 500
	if len(text) <= limit {
		return text
	}
	return string(bytes.ToValidUTF8([]byte(text[:limit]), nil)) + "…"
}
