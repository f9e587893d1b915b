// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// TestReportedOversized: any report of a pod fits into a status, and its clock may differ.
func TestReportedOversized(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	theirs := now.Add(-time.Hour)
	good := webhook.Oversized{Object: "default/a", Version: "v1beta1", FieldsOf: "v1", Fields: []string{".a", strings.Repeat("x", 1000), ".b"}, Bytes: 400_000, Last: theirs.Add(-time.Minute)}
	bad := []webhook.Oversized{good, {Object: "", Version: "v1"}, {Object: strings.Repeat("x", 1000), Version: "v1"}, {Object: "b", Version: strings.Repeat("v", 100)}}
	got := reportedOversized(&webhook.Failures{Now: theirs, Oversized: append([]webhook.Oversized{good}, bad...)}, now)
	want := []v1alpha1.OversizedObject{{Object: "default/a", Version: "v1beta1", FieldsOf: "v1", Fields: []string{".a", ".b"}, Bytes: 400_000, LastTime: metav1.NewTime(now.Add(-time.Minute))}}
	expect.Equal(t, "result", want, got)
	later := reportedOversized(&webhook.Failures{Now: theirs.Add(time.Second), Oversized: []webhook.Oversized{good}}, now)
	same := []bool{sameOversized(got, later, oversizedPrecision), sameOversized(got, nil, oversizedPrecision)}
	expect.Equal(t, "same later, and same as none", []bool{true, false}, same)
}
