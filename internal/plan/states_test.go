// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// produced are the states that all tests of this package have seen, each as the
// type, status and reason of a condition.
var produced = struct {
	sync.Mutex
	states map[string]bool
}{states: map[string]bool{}}

// statesFile lists every state, for the test of the documentation.
var statesFile = filepath.Join("testdata", "states.golden")

// TestMain compares, after all tests, what they have seen with statesFile. A run
// of some of them says nothing about that.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if code == 0 && flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" {
		code = compareStates()
	}
	os.Exit(code)
}

func compareStates() int {
	got := strings.Join(slices.Sorted(maps.Keys(produced.states)), "\n") + "\n"
	if *update {
		if err := os.WriteFile(statesFile, []byte(got), 0o600); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	want, err := os.ReadFile(statesFile)
	if diff := cmp.Diff(string(want), got); err != nil || diff != "" {
		fmt.Printf("the states that tests see are others than those of %s; run with -update, and document them in api/docs/conditions.md (-want +got):\n%s\n", statesFile, diff)
		return 1
	}
	return 0
}

// checkConditions holds every condition of a status to what users are promised.
func checkConditions(t *testing.T, policy *v1alpha1.ConversionPolicy, is v1alpha1.ConversionPolicyStatus) {
	t.Helper()
	produced.Lock()
	defer produced.Unlock()
	if is.ObservedGeneration != policy.Generation {
		t.Errorf("observedGeneration is %d, want %d", is.ObservedGeneration, policy.Generation)
	}
	for _, condition := range is.Conditions {
		produced.states[condition.Type+" "+string(condition.Status)+" "+condition.Reason] = true
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
