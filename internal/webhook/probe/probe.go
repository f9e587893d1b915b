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

	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// Target is a converter pod and what is expected of it.
type Target struct {
	// Address is the IP address and port of the pod.
	Address string
	// CABundle is the caBundle of the CustomResourceDefinition, in PEM. Nothing
	// else is trusted.
	CABundle []byte
	// ServerName is the name that the certificate must be valid for,
	// <service>.<namespace>.svc.
	ServerName string
	// RulesetHash is the ruleset that the pod must serve, and convert the canary objects by.
	RulesetHash string
	// APIVersion is any group and version of the kind. A review without objects
	// asks for it if there are no canary objects.
	APIVersion string
	// Canaries are converted one after the other.
	Canaries []Canary
	// FailuresToken is what makes the pod tell which conversions have failed; empty
	// where it is not asked.
	FailuresToken string
}

// Canary is an object to convert and what must come out.
type Canary struct {
	// DesiredAPIVersion is the group and version to convert to.
	DesiredAPIVersion string
	// Object is converted.
	Object []byte
	// Expected is the answer. The order of its members does not matter, and
	// numbers are compared by their exact value.
	Expected []byte
}

// Result is what a pod told about itself. After an error it holds what was known
// by then.
type Result struct {
	// NotAfter is when the certificate that the pod serves expires.
	NotAfter time.Time
	// RulesetHashes are the rulesets that the pod serves.
	RulesetHashes []string
	// Failures are the conversions that have failed in the pod; nil where it did not tell.
	Failures *webhook.Failures
}

// Pod probes one pod for as long as ctx allows. The error is an *Error that
// names the cause, or the context's own if that was cancelled.
func Pod(ctx context.Context, target Target) (Result, error) {
	var result Result
	connection, err := dial(ctx, &target)
	if err != nil {
		return result, err
	}
	defer connection.close()
	result.NotAfter = connection.notAfter

	if result.RulesetHashes, err = connection.rulesets(ctx); err != nil {
		return result, err
	}
	if !slices.Contains(result.RulesetHashes, target.RulesetHash) {
		return result, failf(ReasonWrongRuleset, "the pod serves ruleset %s, not %s", quote(strings.Join(result.RulesetHashes, ", ")), quote(target.RulesetHash))
	}
	if err := connection.convertAll(ctx, &target); err != nil {
		return result, err
	}
	result.Failures = connection.failures(ctx, target.FailuresToken)
	return result, ctx.Err()
}

func (c *connection) rulesets(ctx context.Context) ([]string, error) {
	body, err := c.call(ctx, http.MethodGet, webhook.RulesetsPath, nil)
	if err != nil {
		return nil, err
	}
	var rulesets webhook.Rulesets
	if err := json.Unmarshal(body, &rulesets); err != nil || len(rulesets.Hashes) == 0 {
		return nil, failf(ReasonUnexpectedAnswer, "GET %s answered %s, not the rulesets that the pod serves", webhook.RulesetsPath, quote(string(body)))
	}
	return rulesets.Hashes, nil
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
	expected, err := decodeExact(canary.Expected)
	if err != nil {
		return fmt.Errorf("the answer expected of the canary to %s is not JSON: %w", canary.DesiredAPIVersion, err)
	}
	if found := difference("", expected, converted); found != "" {
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

// bounded truncates what a pod says to what fits into a condition.
func bounded(text string) string {
	const limit = 500
	if len(text) <= limit {
		return text
	}
	return string(bytes.ToValidUTF8([]byte(text[:limit]), nil)) + "…"
}
