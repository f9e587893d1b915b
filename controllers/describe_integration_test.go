//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// changing is what differs each time.
var changing = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`Resource Version:\s+\d+`), "Resource Version:  N"},
	{regexp.MustCompile(`looked: \d+\n`), "looked: N\n"},
	{regexp.MustCompile(`(?m)^  (Normal|Warning)\s+(\w+)\s+\S+\s+conversion-operator\s+`), "  $1  $2  AGE  conversion-operator  "},
	{regexp.MustCompile(`(?m)^  (Type|----)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)$`), "  $1  $2  $3  $4  $5"},
}

// described are the conditions and events in the answer of kubectl describe,
// without what differs each time.
func described(t *testing.T, policy string) string {
	t.Helper()
	answer, said, err := kubectl("describe", "conversionpolicy", policy)
	if err != nil {
		t.Fatalf("%v: %v", err, said)
	}
	all, err := io.ReadAll(answer)
	must(t, err)
	text := string(all)
	for _, each := range changing {
		text = each.what.ReplaceAllString(text, each.by)
	}
	head, events, _ := strings.Cut(text, "Events:\n")
	_, head, _ = strings.Cut(head, "\nStatus:\n")
	head, _, _ = strings.Cut(head, "\n  Crd:\n")
	lines := strings.Split(strings.TrimSuffix(events, "\n"), "\n")
	slices.Sort(lines[min(2, len(lines)):])
	return head + "\nEvents:\n" + strings.Join(lines, "\n") + "\n"
}

// checkDescriptions compares what a newcomer sees of policies that cannot go on: what is
// wrong, of which field or object, and what to do.
func checkDescriptions(t *testing.T, policies map[string]string) {
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			got := ""
			reason := ""
			eventually(t, "the event is there", func() (bool, string) {
				got = described(t, policy)
				for _, condition := range getPolicy(t, policy).Status.Conditions {
					if condition.Type == v1alpha1.ReadyCondition {
						reason = condition.Reason
					}
				}
				return strings.Contains(got, "Warning  "+reason), got
			})
			golden.Check(t, got, "describe", name+".txt")
		})
	}
}
