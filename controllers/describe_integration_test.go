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

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// changing matches what differs between runs.
var changing = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\b[0-9a-f]{16}\b`), "HASH"},
	{regexp.MustCompile(`\b(run |-migrate-)[0-9a-f]{8}\b`), "${1}ID"},
	{regexp.MustCompile(`Resource Version:\s+\d+`), "Resource Version:  N"},
	{regexp.MustCompile(`looked: \d+\n`), "looked: N\n"},
	{regexp.MustCompile(`(?m)^  (Normal|Warning)\s+(\w+)\s+\S+\s+conversion-operator\s+`), "  $1  $2  AGE  conversion-operator  "},
	{regexp.MustCompile(`(?m)^  (Type|----)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)$`), "  $1  $2  $3  $4  $5"},
}

// described returns the conditions and events in the output of kubectl describe, without what
// differs between runs.
func described(t *testing.T, policy string) string {
	t.Helper()
	answer, said, err := kubectl("describe", "conversionpolicy", policy)
	if err != nil {
		t.Fatalf("%v: %v", err, said)
	}
	all, err := io.ReadAll(answer)
	expect.NoError(t, err)
	text := string(all)
	for _, each := range changing {
		text = each.what.ReplaceAllString(text, each.by)
	}
	head, events, _ := strings.Cut(text, "Events:\n")
	_, head, _ = strings.Cut(head, "\nStatus:\n")
	head, _, _ = strings.Cut(head, "\n  Crd:\n")
	head = strings.ReplaceAll(head, "  Activated Crd:", "  Activated CRD:") // kubectl 1.35
	lines := strings.Split(strings.TrimSuffix(events, "\n"), "\n")
	slices.Sort(lines[min(2, len(lines)):])
	return head + "\nEvents:\n" + strings.Join(lines, "\n") + "\n"
}

// normal are the events of what went well before, some of which may have been too
// short to be seen.
var normal = regexp.MustCompile(`(?m)^  Normal  .*\n`)

// checkDescription compares what kubectl describe shows for a blocked policy: the problem, its
// field or object, and what to do. There is one file for each gate.
func checkDescription(t *testing.T, name, policy string) {
	t.Run("kubectl describe: "+name, func(t *testing.T) {
		got := ""
		expect.Eventually(t, "the events are there", func() (bool, string) {
			got = described(t, policy)
			status := getPolicy(t, policy).Status
			ready := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition)
			// Each event is sent by a goroutine of its own, and the warning about a window last.
			warned := strings.Contains(got, "  "+v1alpha1.ReasonServedUnconverted+"  AGE")
			return strings.Contains(got, "  "+ready.Reason+"  AGE") && warned == (status.UnconvertedWindow != nil), got
		})
		golden.Check(t, normal.ReplaceAllString(got, ""), "describe", name+".txt")
	})
}
