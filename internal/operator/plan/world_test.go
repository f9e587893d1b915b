// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionregistrationv1apply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/forecast"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const crontabs = "crontabs.example.com"

// world is a simulated cluster of package forecast, which tells its story.
type world struct {
	forecast.Cluster
	t *testing.T
	// observed is the state of the cluster.
	observed *observed.Cluster
	// samples, apiServer, written, requested, searched and cleared are what is found out in the background.
	samples, apiServer, written, requested, searched, cleared observed.BackgroundCheck
	// resampled is what is found when samples are taken again.
	resampled observed.BackgroundCheck
	// held is what objects hold in annotations.
	held conversion.Holdings
	// counts has samples tell of it, too.
	counts bool
	// late has a client write a mode of v1beta1 while accepted losses are taken away.
	late bool
	// denied has an object refuse that accepted losses are taken away.
	denied bool
	// tick is how long each step takes; a second where it is 0.
	tick time.Duration
	// countsSince is what the latest reading of metrics was asked for.
	countsSince time.Time
	// watch is what is watched in a world with fleets (world_fleet_test.go); it is nil in a world without.
	watch *watch
	// tellsRuns tells of events of migration runs too.
	tellsRuns bool
	// writes is called for every step; nil if no test asks.
	writes func(step.Step)
	// rotation is the state that was told last.
	rotation v1alpha1.RotationState
	// shuffles counts the orders in which things were observed.
	shuffles uint64
	// wanted is the revision that was decided for last.
	wanted string
	// chapter is what was said last, and rests the policy as it came to rest in each.
	chapter string
	rests   []v1alpha1.ConversionPolicy
	log     strings.Builder
	said    string
	// events are those that users have seen, by chapters.
	events strings.Builder
}

func newWorld(t *testing.T, policy string) *world {
	t.Helper()
	w := &world{t: t, observed: &observed.Cluster{}}
	w.State, w.Answer, w.Tell = w.observed, w.answer, w.tell
	w.observed.Settings = observed.Settings{Namespace: "conversion-system", Image: "conversion-operator:test",
		PropagationDelay: time.Minute, ProofLifetime: observed.DefaultProofLifetime, SizeAdmission: true}
	w.observed.Evictable = 1
	w.observed.Now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w.observed.Policy = &v1alpha1.ConversionPolicy{}
	read(t, policy, w.observed.Policy)
	if w.observed.Policy.Spec.Workload == nil {
		w.observed.Policy.Spec.Workload = &v1alpha1.Workload{Type: v1alpha1.WorkloadDedicated, Dedicated: &v1alpha1.ConverterPods{}} // pods of the policy alone
	}
	if migration := &w.observed.Policy.Spec.Migration; migration.Mode == "" {
		migration.Mode = v1alpha1.MigrationAutomatic // stories go on without a trigger
	}
	if verification := &w.observed.Policy.Spec.Verification; verification.ResampleInterval == nil {
		verification.ResampleInterval = &metav1.Duration{} // stories go on for weeks
	}
	return w
}

func read(t *testing.T, text string, into any) {
	t.Helper()
	expect.NoError(t, yaml.UnmarshalStrict([]byte(text), into))
}

func (w *world) tell(format string, args ...any) { fmt.Fprintf(&w.log, format+"\n", args...) }

var rulesetHash = regexp.MustCompile(`\b[0-9a-f]{16}\b`)

// story is what was told, with the plans numbered as they came: their hashes
// change with the engine.
func (w *world) story() string {
	var seen []string
	return rulesetHash.ReplaceAllStringFunc(w.log.String(), func(hash string) string {
		if !slices.Contains(seen, hash) {
			seen = append(seen, hash)
		}
		return fmt.Sprintf("#%d", slices.Index(seen, hash)+1)
	})
}

// say starts a chapter: a client does something.
func (w *world) say(text string) {
	w.chapter = text
	w.tell("\n# %s", text)
	fmt.Fprintf(&w.events, "\n# %s\n", text)
}

// changeRules lets the rule of the tests split at another separator.
func (w *world) changeRules(separator string) {
	w.observed.Policy.Spec.Converter.Declarative.Spokes[0].Rules[0].Format.Template = "{host}" + separator + "{port}"
	w.observed.Policy.Generation++
}

// converge plans and carries out until nothing changes any more.
func (w *world) converge() {
	w.t.Helper()
	for range 50 {
		w.observed.Now = w.observed.Now.Add(cmp.Or(w.tick, time.Second))
		decided := w.plan()
		before, news := w.snapshot(), w.eventsOf(decided)
		w.tellSteps(decided.Steps)
		w.tellReady(decided.Status)
		w.carryOut(decided)
		if w.snapshot() == before {
			w.expectNothingNew(news)
			if waits := "until all API servers refuse objects that are too large"; strings.Contains(w.said, waits) {
				w.observed.Now = w.observed.Now.Add(decided.RecheckAfter)
				continue
			}
			w.rest()
			return
		}
	}
	w.t.Fatalf("it never comes to rest:\n%s", w.log.String())
}

// carryOut does what was decided, without a word.
func (w *world) carryOut(decided plan.Plan) {
	w.t.Helper()
	w.wanted = cmp.Or(decided.Status.Revision, w.wanted)
	for _, s := range decided.Steps {
		w.do(s)
	}
	for _, event := range w.eventsOf(decided) {
		fmt.Fprintln(&w.events, toldEvent(event))
		if w.tellsRuns && strings.HasSuffix(event.Action, "Run") {
			w.tell("  event %s: %s", event.Reason, event.Note)
		}
	}
	w.observed.Policy.Status = decided.Status
}

// plan decides once, and holds kstatus against what is said.
func (w *world) plan() plan.Plan {
	w.t.Helper()
	w.observe()
	decided := w.Plan()
	w.expectSwitches(decided)
	checkStatus(w.t, w.observed.Policy, decided.Status)
	w.expectSameInAnyOrder(decided)
	return decided
}

// observe lets pods answer, and looks at what API servers may request.
func (w *world) observe() {
	w.t.Helper()
	w.Observe()
	if w.Fleets != nil {
		w.expectAnswers()
	}
}

// snapshot is everything that a decision depends on, but the time.
func (w *world) snapshot() string {
	w.observe()
	return w.Snapshot()
}

func (w *world) tellReady(is v1alpha1.ConversionPolicyStatus) {
	ready := apimeta.FindStatusCondition(is.Conditions, v1alpha1.ReadyCondition)
	line := fmt.Sprintf("Ready=%s %s", ready.Status, ready.Reason)
	if ready.Message != "" {
		line += ": " + ready.Message
	}
	if blocked := apimeta.FindStatusCondition(is.Conditions, v1alpha1.DeletionBlockedCondition); blocked != nil {
		line += "\nDeletionBlocked " + blocked.Reason + ": " + blocked.Message
	}
	for _, abnormal := range []string{v1alpha1.ConversionsFailingCondition, v1alpha1.SamplesFailingCondition, v1alpha1.BootstrapDependencyCondition} {
		if is := apimeta.FindStatusCondition(is.Conditions, abnormal); is != nil {
			line += "\n" + is.Type + " " + is.Reason + ": " + is.Message
		}
	}
	if line != w.said {
		w.tell("%s", line)
	}
	w.said = line
	w.tellRotation(is.Certificate)
}

func (w *world) tellCondition(name string) {
	is := apimeta.FindStatusCondition(w.observed.Policy.Status.Conditions, name)
	w.tell("%s=%s %s: %s", is.Type, is.Status, is.Reason, is.Message)
}

func (w *world) tellSteps(steps []step.Step) {
	for _, s := range steps {
		if _, quiet := s.(step.Apply); !quiet {
			w.tell("  %s", w.name(s))
		}
	}
}

func (w *world) name(s step.Step) string {
	kind := reflect.TypeOf(s).Name()
	switch s := s.(type) {
	case step.Create:
		return kind + " " + step.Name(s.Object)
	case step.PruneStoredVersions:
		return kind + " to " + s.StorageVersion
	case step.RecordDrift:
		return fmt.Sprintf("%s %s: %s", kind, s.Drift.Answer, s.Note)
	case step.SuspendRun:
		return fmt.Sprintf("%s %t", kind, s.Suspend)
	case step.WriteCertificate:
		return kind + ": " + w.describeWrite(s)
	case step.IssueAuthority:
		if s.Next {
			return kind + ", the next"
		}
	case step.AwaitRuleset:
		return kind + " " + s.Hash + " in fleet " + s.Fleet
	case step.RefreshPod:
		return kind + " " + s.Name
	case step.EvictPod:
		return kind + " " + s.Note
	case step.DeleteSecret:
		return kind + " " + s.Name
	case step.SwitchCRD:
		return kind + " to " + called(s.Conversion.Webhook.ClientConfig)
	case step.DeleteDeployment:
		return kind + " " + s.Name
	case step.StoreRulesets:
		return kind + " " + w.describeStore(s)
	case step.CreateFleet:
		return kind + " " + s.Name
	case step.DeleteRulesets:
		return kind + " " + s.Name[strings.LastIndex(s.Name, "-")+1:]
	case step.DeleteRights:
		if which := rightsOf[s.Name]; which != "" {
			return kind + " to " + which
		}
	case step.TakeSamples:
		if s.Again {
			return fmt.Sprintf("%s %d, again", kind, s.Most)
		}
		return fmt.Sprintf("%s %d", kind, s.Most)
	case step.CountWrites:
		return fmt.Sprintf("%s from %s to %s, after resourceVersion %q, stored at %q throughout", kind,
			s.Since.Format(time.TimeOnly), s.Until.Format(time.TimeOnly), s.After, s.Storage)
	case step.EditVersions:
		return kind + ": " + s.Note
	case step.FindDependents:
		return fmt.Sprintf("%s of %s as %s", kind, strings.Join(s.Versions, ", "), s.User)
	case step.ClearManagedFields:
		if len(s.Discard) > 0 {
			return fmt.Sprintf("%s, and discard %s", kind, strings.Join(s.Discard, ", "))
		}
	case step.Warn:
		return kind + " " + s.Reason + ": " + s.Note
	}
	return kind
}

// do carries out one step, and looks at what it does.
func (w *world) do(s step.Step) {
	w.t.Helper()
	if w.writes != nil {
		w.writes(s)
	}
	switch s := s.(type) {
	case step.DeleteRights:
		expect.Equal(w.t, "it keeps to what is its own: the ClusterRole stays", w.observed.Granted != nil, s.KeepClusterRole)
	case step.StoreRulesets:
		expect.Equal(w.t, "owner of the rulesets", names.Child(crontabs), s.Owner)
	}
	if text := step.Describe(s); text == "" || strings.Contains(text, "{") {
		w.t.Errorf("%T has no text: %q", s, text)
	}
	w.Do(s)
	expect.NoError(w.t, w.Err)
	if apply, is := s.(step.Apply); is {
		if _, is := apply.Object.(*admissionregistrationv1apply.ValidatingWebhookConfigurationApplyConfiguration); is {
			w.tellAdmission()
		}
	}
}

// answer is what a background check finds.
func (w *world) answer(s step.Step) observed.BackgroundCheck {
	switch s := s.(type) {
	case step.TakeSamples:
		if s.Again {
			return w.resampled
		}
		answer := w.samples
		if s.Rules.Ruleset != nil && w.counts {
			answer.Held = w.count(s.Rules.Ruleset)
		}
		return answer
	case step.ProbeAPIServer:
		return w.apiServer
	case step.CountWrites:
		return w.written
	case step.ReadRequests:
		w.countsSince = s.Since
		return w.requested
	case step.FindDependents:
		return w.searched
	case step.ClearManagedFields:
		return w.clear(s)
	}
	w.t.Fatalf("%T is no background check", s)
	return observed.BackgroundCheck{}
}

// applyCRD creates or changes the CustomResourceDefinition.
func (w *world) applyCRD(text string) {
	w.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	read(w.t, text, crd)
	w.ApplyCRD(crd)
}

// record lets the latest migration Job write its record.
func (w *world) record(record contract.Record) {
	w.t.Helper()
	if len(w.observed.Runs) == 0 {
		w.t.Fatal("no migration runs")
	}
	if record.Finished() && record.Ruleset == "" {
		record.Preserved = w.held.Clone()
	}
	w.Record(record)
}

// pair is a pair of key and certificate that was issued without an error.
func (w *world) pair(pair pki.KeyPair, err error) pki.KeyPair {
	w.t.Helper()
	expect.NoError(w.t, err)
	return pair
}
