// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// expectCondition looks at one condition, whose message has to have a text in it.
func expectCondition(t *testing.T, is v1alpha1.ConversionPolicyStatus, condition, value, reason, message string) {
	t.Helper()
	got := apimeta.FindStatusCondition(is.Conditions, condition)
	if got == nil {
		t.Errorf("there is no condition %s", condition)
		return
	}
	if got.Status != metav1.ConditionStatus(value) || got.Reason != reason || !strings.Contains(got.Message, message) {
		t.Errorf("%s is %s %s: %s; want %s %s with %q", condition, got.Status, got.Reason, got.Message, value, reason, message)
	}
}

// checkStatus holds the field's own reading of a status against ours.
func checkStatus(t *testing.T, policy *v1alpha1.ConversionPolicy, is v1alpha1.ConversionPolicyStatus) {
	t.Helper()
	checkConditions(t, policy, is)
	object := policy.DeepCopy()
	object.Status = is
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	expect.NoError(t, err)
	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	expect.NoError(t, err)
	want := status.InProgressStatus
	switch {
	case !policy.DeletionTimestamp.IsZero():
		want = status.TerminatingStatus
	case apimeta.IsStatusConditionTrue(is.Conditions, v1alpha1.StalledCondition):
		want = status.FailedStatus
	case apimeta.IsStatusConditionTrue(is.Conditions, v1alpha1.ReadyCondition):
		want = status.CurrentStatus
	}
	expect.Equal(t, "kstatus, which says "+result.Message, want, result.Status)
}

// checkConditions holds every condition of a status to what users are promised.
func checkConditions(t *testing.T, policy *v1alpha1.ConversionPolicy, is v1alpha1.ConversionPolicyStatus) {
	t.Helper()
	expect.Equal(t, "observedGeneration", policy.Generation, is.ObservedGeneration)
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

// expectSameInAnyOrder decides again about the same, listed in another order:
// each decision of all stories does so.
func (w *world) expectSameInAnyOrder(decided plan.Plan) {
	w.t.Helper()
	w.shuffles++
	mixed := shuffled(*w.observed, rand.New(rand.NewPCG(0, w.shuffles))) //nolint:gosec // orders, and no secrets
	again := plan.Make(mixed)
	if mixed.CRD != nil {
		*mixed.CRD = *w.observed.CRD // steps carry it unchanged
	}
	before, after := w.asText(decided), w.asText(again)
	expect.Equal(w.t, "decisions on the same, observed in another order", strings.Split(before, "\n"), strings.Split(after, "\n"))
}

// asText is a plan with its steps and their types, a line for each.
func (w *world) asText(decided plan.Plan) string {
	w.t.Helper()
	lines := []any{decided.RecheckAfter, decided.Status}
	for _, step := range decided.Steps {
		lines = append(lines, w.name(step), step)
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	for _, line := range lines {
		expect.NoError(w.t, encoder.Encode(line))
	}
	return text.String()
}

// shuffled is the same in another order. What clients wrote keeps its order: users
// find their lists as they wrote them.
func shuffled(state observed.Cluster, random *rand.Rand) observed.Cluster {
	state.Leftovers = reordered(state.Leftovers, random)
	state.Revisions = reordered(state.Revisions, random)
	state.Pods = reordered(state.Pods, random)
	state.Ending = reordered(state.Ending, random)
	state.External.Endpoints = reordered(state.External.Endpoints, random)
	state.Fleets = reordered(state.Fleets, random)
	state.Runs = reordered(state.Runs, random)
	for i := range state.Pods {
		state.Pods[i].Revisions = reordered(state.Pods[i].Revisions, random)
	}
	if state.CRD != nil {
		state.CRD = state.CRD.DeepCopy()
		state.CRD.ManagedFields = reordered(state.CRD.ManagedFields, random)
		state.CRD.Status.Conditions = reordered(state.CRD.Status.Conditions, random)
	}
	return state
}

func reordered[T any](list []T, random *rand.Rand) []T {
	list = slices.Clone(list)
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

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
	debug.SetGCPercent(400) // garbage of many small states is a third of the work of these tests
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
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "api", "docs", "conditions.md"))
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

// beginnings are of a world without a CustomResourceDefinition. Whatever is found out about a converter is a
// state, with the words of who found it out.
func beginnings() changes {
	all := changes{
		"objects cannot be read": func(w *world) {
			w.samples = observed.BackgroundCheck{Reason: v1alpha1.ReasonObjectsUnreadable, Message: "the server is overloaded"}
			w.define(bothStoredNew)
		},
		"another client migrates": func(w *world) {
			w.applyCRD(bothStoredNew)
			w.observed.CRD.Status.Conditions = storageMigrating()
			w.converge()
		},
		"a retirement is taken back, and drift is tolerated": func(w *world) {
			w.observed.Policy.Spec.Drift = v1alpha1.DriftTolerate
			w.retire("v1beta1", v1alpha1.RetirementDeprecate)
			promoted(w)
			versions := w.Versions()
			delete(versions[0], "deprecated")
			delete(versions[0], "deprecationWarning")
			w.putVersions("argocd-controller", versions)
		},
		"administrators grant every right, and none to clear": func(w *world) {
			w.observed.Granted = &observed.Granted{Read: true, Migrate: true}
			w.retire("v1beta1", v1alpha1.RetirementUnserve)
			promoted(w)
			w.later(week)
			w.later(week)
		},
	}
	// The reasons of internal/webhook/probe, which a plan does not know.
	for _, reason := range []string{
		"InvalidCertificate", "Unreachable",
		"TLSVerificationFailed", "UnexpectedAnswer", "WrongRuleset", "CanaryFailed",
	} {
		all["API servers call the converter: "+reason] = func(w *world) {
			w.apiServer = observed.BackgroundCheck{Reason: reason, Message: "it said so"}
			w.define(bothStoredNew)
		}
	}
	for name, change := range all {
		all[name] = func(w *world) {
			change(w)
			w.log.Reset()
		}
	}
	return all
}
