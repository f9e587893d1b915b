// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// produced are the states that the tests of this package have seen, each as the
// type, status and reason of a condition.
var produced = struct {
	sync.Mutex
	states map[string]bool
}{states: map[string]bool{}}

func produce(condition metav1.Condition) {
	produced.Lock()
	defer produced.Unlock()
	produced.states[condition.Type+" "+string(condition.Status)+" "+condition.Reason] = true
}

// TestMain compares, after all tests, what they have seen with what is documented:
// users find every state, and none that does not exist. A run of some tests says
// nothing about that.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	all := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" && !testing.Short()
	if code == 0 && all {
		code = compareStates()
	}
	os.Exit(code)
}

// ofControllers are the states that package controllers reports, and not a plan.
var ofControllers = []string{v1alpha1.ReadyCondition + " False " + v1alpha1.ReasonApplyFailed}

func compareStates() int {
	text, err := os.ReadFile(filepath.Join("..", "..", "api", "docs", "conditions.md"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	documented := documentedStates(string(text))
	code := 0
	for state := range produced.states {
		if !documented[state] && !saysOnceMore(state, documented) {
			fmt.Fprintf(os.Stderr, "api/docs/conditions.md does not have the state %q, which the tests of this package see\n", state)
			code = 1
		}
	}
	for state := range documented {
		if !produced.states[state] && !slices.Contains(ofControllers, state) {
			fmt.Fprintf(os.Stderr, "no test of this package sees the state %q of api/docs/conditions.md\n", state)
			code = 1
		}
	}
	return code
}

var (
	heading  = regexp.MustCompile(`^###? ([A-Z][A-Za-z]+)$`)
	stateRow = regexp.MustCompile("^\\| (True|False|Unknown) \\| `([A-Za-z]+)` \\|")
)

// documentedStates are the rows of the tables, under the headings of conditions.
func documentedStates(text string) map[string]bool {
	states, condition := map[string]bool{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if found := heading.FindStringSubmatch(line); found != nil {
			condition = found[1]
		}
		if found := stateRow.FindStringSubmatch(line); found != nil {
			states[condition+" "+found[1]+" "+found[2]] = true
		}
	}
	return states
}

// saysOnceMore holds for what repeats another condition: the summaries, and gates
// that were not looked at.
func saysOnceMore(state string, documented map[string]bool) bool {
	word := strings.Fields(state)
	condition, reason := word[0], word[2]
	switch {
	case reason == v1alpha1.ReasonNotEvaluated:
		return slices.Contains(v1alpha1.Gates, condition)
	case !slices.Contains(summaries, condition):
		return false
	}
	return slices.ContainsFunc(append([]string{v1alpha1.ReadyCondition, v1alpha1.DeletionBlockedCondition}, v1alpha1.Gates...), func(other string) bool {
		return slices.ContainsFunc([]string{"True", "False", "Unknown"}, func(status string) bool {
			return documented[other+" "+status+" "+reason]
		})
	})
}

// TestWhatIsFoundOut: whatever is found out about a converter is a state, with the
// words of who found it out.
func TestWhatIsFoundOut(t *testing.T) {
	// The reasons of internal/webhook/probe, which a plan does not know.
	for _, reason := range []string{
		"InvalidCABundle", "ConnectionRefused", "NoEndpoints", "Unreachable", "Timeout",
		"TLSVerificationFailed", "UnexpectedAnswer", "WrongRuleset", "CanaryFailed",
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, policyYAML)
			w.apiServer = observed.BackgroundCheck{Reason: reason, Message: "it said so"}
			w.applyCRD(bothStoredNew)
			w.converge()
			expectCondition(t, w.observed.Policy.Status, v1alpha1.ConversionVerifiedCondition, "False", reason, "it said so")
		})
	}
	t.Run("objects that cannot be read", func(t *testing.T) {
		w := newWorld(t, policyYAML)
		w.samples = observed.BackgroundCheck{Reason: v1alpha1.ReasonSamplesUnreadable, Message: "the server is overloaded"}
		w.applyCRD(bothStoredNew)
		w.converge()
		expectCondition(t, w.observed.Policy.Status, v1alpha1.ConversionVerifiedCondition, "False", v1alpha1.ReasonSamplesUnreadable, "overloaded")
	})
}

// TestOthersMigrateMeanwhile: the CustomResourceDefinition is left alone.
func TestOthersMigrateMeanwhile(t *testing.T) {
	t.Run("before it is active", func(t *testing.T) {
		w := newWorld(t, policyYAML)
		w.applyCRD(bothStoredNew)
		w.observed.CRD.Status.Conditions = storageMigrating()
		w.converge()
		expectCondition(t, w.observed.Policy.Status, v1alpha1.ConversionConfiguredCondition, "False", v1alpha1.ReasonForeignStorageMigration, "waiting for it to finish")
	})
	t.Run("before a version is retired", func(t *testing.T) {
		w := active(t)
		w.observed.CRD.Status.Conditions = storageMigrating()
		w.observed.Policy.Spec.Retirement = []v1alpha1.Retirement{{Version: "v1beta1", Action: v1alpha1.RetirementDeprecate}}
		w.converge()
		expectCondition(t, w.observed.Policy.Status, v1alpha1.VersionsRetiredCondition, "False", v1alpha1.ReasonForeignStorageMigration, "")
	})
}

// TestARetirementIsTakenBack: where nothing is to be repaired, it is told.
func TestARetirementIsTakenBack(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.observed.Policy.Spec.Drift = v1alpha1.DriftReport
	w.retire("v1beta1", v1alpha1.RetirementDeprecate)
	promoted(w)
	versions := w.versions()
	delete(versions[0], "deprecated")
	delete(versions[0], "deprecationWarning")
	w.writeVersions("argocd-controller", versions)
	w.converge()
	expectCondition(t, w.observed.Policy.Status, v1alpha1.VersionsRetiredCondition, "False", v1alpha1.ReasonVersionsDrifted, "argocd-controller")
}

// TestClearingNeedsAGrant: where administrators grant every right, the commands
// for the one that is missing are told.
func TestClearingNeedsAGrant(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.observed.Granted = &observed.Granted{Read: true, Migrate: true}
	w.retire("v1beta1", v1alpha1.RetirementUnserve)
	promoted(w)
	w.later(week)
	w.later(week)
	expectCondition(t, w.observed.Policy.Status, v1alpha1.VersionsRetiredCondition, "False", v1alpha1.ReasonRightsNotGranted, "kubectl create clusterrole")
}
