// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// checkConditions holds every condition of a status to what users are promised.
func checkConditions(t *testing.T, policy *v1alpha1.ConversionPolicy, is v1alpha1.ConversionPolicyStatus) {
	t.Helper()
	if is.ObservedGeneration != policy.Generation {
		t.Errorf("observedGeneration is %d, want %d", is.ObservedGeneration, policy.Generation)
	}
	for _, condition := range is.Conditions {
		produce(condition)
		if was := condition.ObservedGeneration; was > policy.Generation || was < policy.Generation && slices.Contains(summaries, condition.Type) {
			t.Errorf("%s is of generation %d, want %d", condition.Type, condition.ObservedGeneration, policy.Generation)
		}
		for _, wrong := range faults(condition) {
			t.Errorf("%s=%s %s %s: %s", condition.Type, condition.Status, condition.Reason, wrong, condition.Message)
		}
	}
}

// summaries are the conditions that speak of the policy as it is now. A gate that
// was not looked at again keeps the generation of which it spoke.
var summaries = []string{v1alpha1.ReadyCondition, v1alpha1.ReconcilingCondition, v1alpha1.StalledCondition}

// maxMessage is what kubectl describe shows in a few lines, and an event holds.
const maxMessage = 1024

var reasonForm = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)

// faults are what is wrong with how a condition says what it says.
func faults(condition metav1.Condition) []string {
	text := condition.Message
	var faults []string
	for fault, is := range map[string]bool{
		"has a reason that is not one word":         !reasonForm.MatchString(condition.Reason),
		"has no message":                            text == "" && condition.Type != v1alpha1.ReconcilingCondition && condition.Type != v1alpha1.StalledCondition,
		"is longer than an event can hold":          len(text) > maxMessage,
		"is no valid text":                          !utf8.ValidString(text),
		"has other spaces than one between words":   strings.Join(strings.Fields(text), " ") != text,
		"ends in the middle":                        strings.HasSuffix(text, ":") || strings.HasSuffix(text, ";") || strings.HasSuffix(text, ","),
		"ends with a full stop, unlike all others":  strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "..."),
		"shows how it was programmed":               strings.ContainsAny(text, "\x00\t") || strings.Contains(text, "%!") || strings.Contains(text, "0x") || strings.Contains(text, "<nil>"),
		"has punctuation without a word before":     strings.Contains(text, " ;") || strings.Contains(text, " ,") || strings.Contains(text, ";;") || strings.Contains(text, ": :"),
		"begins with neither a letter nor a number": text != "" && !beginsWell(text),
	} {
		if is {
			faults = append(faults, fault)
		}
	}
	return faults
}

func beginsWell(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return unicode.IsLetter(first) || unicode.IsDigit(first)
}
