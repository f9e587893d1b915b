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

	batchv1 "k8s.io/api/batch/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

const crontabs = "crontabs.example.com"

// world is a cluster that does what it is told at once. It holds what is
// observed, carries out what is planned, and tells the story.
type world struct {
	t        *testing.T
	observed plan.Observed
	// holdBack keeps pods as they are while the Deployment changes.
	holdBack bool
	// misbehave is why new pods fail their probe; empty when they do not.
	misbehave string
	// lies keeps pods as they are where their Deployment does not change.
	lies bool
	// samples, apiServer, written, requested and cleared are what is found out in the background.
	samples, apiServer, written, requested, cleared plan.BackgroundCheck
	// resampled is what is found when samples are taken again.
	resampled plan.BackgroundCheck
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
	// left are Secrets that may not be used any more.
	left []string
	// owners are the field managers of spec.conversion's fields.
	owners map[string]string
	// tellsRuns tells of events of migration runs too.
	tellsRuns bool
	// versionsBy is the field manager of spec.versions.
	versionsBy string
	// rotation is the state that was told last.
	rotation v1alpha1.RotationState
	// shuffles counts the orders in which things were observed.
	shuffles uint64
	// wanted is the hash of the rules that were stored last.
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
	w := &world{t: t}
	w.observed.Settings = plan.Settings{Namespace: "conversion-system", Image: "conversion-operator:test",
		PropagationDelay: time.Minute, ProofLifetime: plan.DefaultProofLifetime, SizeAdmission: true}
	w.observed.Evictable = 1
	w.observed.Now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w.observed.Policy = &v1alpha1.ConversionPolicy{}
	read(t, policy, w.observed.Policy)
	if verification := &w.observed.Policy.Spec.Verification; verification.ResampleInterval == nil {
		verification.ResampleInterval = &metav1.Duration{} // stories go on for weeks
	}
	return w
}

func read(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
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

// say starts a chapter: somebody does something.
func (w *world) say(text string) {
	w.chapter = text
	w.tell("\n# %s", text)
	fmt.Fprintf(&w.events, "\n# %s\n", text)
}

// applyCRD creates or changes the CustomResourceDefinition as the API server would.
func (w *world) applyCRD(text string) {
	w.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	read(w.t, text, crd)
	crd.Generation = 1
	crd.UID = types.UID("uid-of-the-crd")
	if old := w.observed.CRD; old != nil {
		crd.Generation = old.Generation + 1
		crd.Spec.Conversion, crd.ManagedFields = old.Spec.Conversion, old.ManagedFields
		crd.Status.StoredVersions = slices.Clone(old.Status.StoredVersions)
	}
	for _, version := range crd.Spec.Versions {
		if version.Storage && !slices.Contains(crd.Status.StoredVersions, version.Name) {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, version.Name)
		}
	}
	changed := w.observed.CRD != nil && !equality.Semantic.DeepEqual(w.observed.CRD.Spec.Versions, crd.Spec.Versions)
	w.observed.CRD = crd
	if changed {
		w.versionsBy = "kubectl"
		w.account(w.versionsBy)
	}
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
	w.t.Fatalf("it never settles:\n%s", w.log.String())
}

// carryOut does what was decided, without a word.
func (w *world) carryOut(decided plan.Plan) {
	w.t.Helper()
	for _, step := range decided.Steps {
		w.do(step)
	}
	for _, event := range w.eventsOf(decided) {
		fmt.Fprintln(&w.events, toldEvent(event))
		if w.tellsRuns && event.Action == "Migrate" {
			w.tell("  event %s: %s", event.Reason, event.Note)
		}
	}
	w.observed.Policy.Status = decided.Status
}

// plan decides once, and holds kstatus against what is said.
func (w *world) plan() plan.Plan {
	w.t.Helper()
	if declarative := w.observed.Policy.Spec.Converter.Declarative; w.observed.CRD == nil || declarative == nil {
		w.observed.Rules = compile.Result{}
	} else {
		w.observed.Rules = compile.Compile(w.observed.CRD, declarative)
	}
	w.verifyPods()
	w.findLeftovers()
	decided := plan.Make(w.observed)
	checkStatus(w.t, w.observed.Policy, decided.Status)
	w.expectSameInAnyOrder(decided)
	return decided
}

// snapshot is everything that a decision depends on, but the time.
func (w *world) snapshot() string {
	w.verifyPods()
	observed := w.observed
	observed.Now = time.Time{}
	text, err := yaml.Marshal(observed)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
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
	for _, abnormal := range []string{v1alpha1.ConversionsFailingCondition, v1alpha1.SamplesFailingCondition} {
		if is := apimeta.FindStatusCondition(is.Conditions, abnormal); is != nil {
			line += "\n" + is.Type + " " + is.Reason + ": " + is.Message
		}
	}
	if line != w.said {
		w.tell("%s", line)
	}
	w.said = line
	w.tellRotation(is.Rotation)
}

func (w *world) tellCondition(name string) {
	is := apimeta.FindStatusCondition(w.observed.Policy.Status.Conditions, name)
	w.tell("%s=%s %s: %s", is.Type, is.Status, is.Reason, is.Message)
}

func (w *world) tellSteps(steps []plan.Step) {
	for _, step := range steps {
		if _, quiet := step.(plan.Apply); !quiet {
			w.tell("  %s", w.name(step))
		}
	}
}

func (w *world) name(step plan.Step) string {
	kind := reflect.TypeOf(step).Name()
	switch step := step.(type) {
	case plan.Create:
		return kind + " " + nameOf(step.Object)
	case plan.PruneStoredVersions:
		return kind + " to " + step.StorageVersion
	case plan.RecordDrift:
		return fmt.Sprintf("%s %s: %s", kind, step.Drift.Answer, step.Note)
	case plan.SuspendRun:
		return fmt.Sprintf("%s %t", kind, step.Suspend)
	case plan.WriteCertificate:
		return kind + ": " + w.describeWrite(step)
	case plan.IssueAuthority:
		if step.Next {
			return kind + ", the next"
		}
	case plan.RefreshPod:
		return kind + " " + step.Name
	case plan.EvictPod:
		return kind + " " + step.Note
	case plan.DeleteSecret:
		return kind + " " + step.Name
	case plan.SwitchCRD:
		return kind + " to " + called(step.Conversion.Webhook.ClientConfig)
	case plan.DeleteDeployment:
		return kind + " " + step.Name
	case plan.DeleteRuleset:
		return kind + " " + step.Name[strings.LastIndex(step.Name, "-")+1:]
	case plan.DeleteRights:
		if which := rightsOf[step.Name]; which != "" {
			return kind + " to " + which
		}
	case plan.TakeSamples:
		if step.Again {
			return fmt.Sprintf("%s %d, again", kind, step.Most)
		}
		return fmt.Sprintf("%s %d", kind, step.Most)
	case plan.CountWrites:
		return fmt.Sprintf("%s from %s to %s, stored at %q throughout", kind,
			step.Since.Format(time.TimeOnly), step.Until.Format(time.TimeOnly), step.Storage)
	case plan.EditVersions:
		return kind + ": " + step.Note
	case plan.ClearManagedFields:
		if len(step.Discard) > 0 {
			return fmt.Sprintf("%s, and discard %s", kind, strings.Join(step.Discard, ", "))
		}
	case plan.Warn:
		return kind + " " + step.Reason + ": " + step.Note
	}
	return kind
}

func nameOf(object runtime.ApplyConfiguration) string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err.Error()
	}
	named := unstructured.Unstructured{Object: content}
	return named.GetKind() + " " + named.GetName()
}

// do carries out one step.
func (w *world) do(step plan.Step) {
	w.t.Helper()
	observed := &w.observed
	switch step := step.(type) {
	case plan.AddFinalizer:
		observed.Policy.Finalizers = append(observed.Policy.Finalizers, plan.Finalizer)
	case plan.RemoveFinalizer:
		observed.Policy.Finalizers = nil
	case plan.IssueAuthority, plan.PromoteAuthority, plan.WriteCertificate, plan.RefreshPod:
		w.certify(step)
	case plan.Apply:
		w.applied(step.Object)
	case plan.Create:
		w.created(step.Object)
	case plan.SwitchCRD:
		w.write(plan.ManagedBy, step.Conversion)
	case plan.EvictPod:
		w.evict(step.Name)
	case plan.RecordDrift:
		observed.Policy.Status.Drift = &step.Drift
	case plan.RestoreCRD:
		w.drop(plan.ManagedBy)
	case plan.PruneStoredVersions:
		observed.CRD.Status.StoredVersions = []string{step.StorageVersion}
	case plan.DeleteRun:
		observed.Runs = slices.DeleteFunc(observed.Runs, func(run plan.Run) bool { return plan.RunName(crontabs, run.ID) == step.Name })
	case plan.DeleteJob:
		for i, run := range observed.Runs {
			if run.Job != nil && run.Job.Name == step.Name {
				observed.Runs[i].Job = nil
			}
		}
	case plan.DeleteRights:
		if step.Kept != (w.observed.Granted != nil) {
			w.t.Fatalf("it does not keep to what is its own: %+v", step)
		}
		*w.rights(step.Name) = false
	case plan.DeleteDeployment:
		w.deleteDeployment(step.Name)
	case plan.DeleteSecret:
		w.deleteSecret(step.Name)
	case plan.DeleteService:
		observed.Exposed, observed.Endpoints, observed.PortEndpoints = false, 0, nil
	case plan.TakeSamples:
		if step.Again {
			observed.Resampled = w.inquire(observed.Resampled, step.Subject, w.resampled)
			return
		}
		answer := w.samples
		if step.Rules.Ruleset != nil && w.counts {
			answer.Held = w.count(step.Rules.Ruleset)
		}
		observed.Samples = w.inquire(observed.Samples, step.Subject, answer)
	case plan.ProbeAPIServer:
		observed.APIServer = w.inquire(observed.APIServer, step.Subject, w.apiServer)
	case plan.CountWrites:
		observed.Written = w.inquire(observed.Written, step.Subject, w.written)
	case plan.EditVersions:
		w.editVersions(step)
	case plan.ReadRequests:
		observed.Requested, w.countsSince = w.inquire(observed.Requested, step.Subject, w.requested), step.Since
	case plan.ClearManagedFields:
		observed.Cleared = w.inquire(observed.Cleared, step.Subject, w.clear(step))
	case plan.Warn:
	case plan.DeleteAdmission:
		observed.Admission = nil
	case plan.DeleteRuleset:
		observed.Revisions = slices.DeleteFunc(observed.Revisions, func(stored plan.StoredRevision) bool {
			return plan.PlanName(crontabs, stored.Hash) == step.Name
		})
	case plan.DeleteChildren:
		*observed = plan.Observed{Settings: observed.Settings, Now: observed.Now, Policy: observed.Policy, CRD: observed.CRD, External: observed.External}
	case plan.SuspendRun:
		for _, run := range observed.Runs {
			run.Job.Spec.Suspend = &step.Suspend
		}
	default:
		w.t.Fatalf("the world cannot %T", step)
	}
}

// inquire answers at once what takes its time elsewhere.
func (w *world) inquire(last *plan.BackgroundCheck, subject string, answer plan.BackgroundCheck) *plan.BackgroundCheck {
	answer.Subject, answer.Ended, answer.Attempts = subject, w.observed.Now, 1
	if last != nil && last.Subject == subject {
		answer.Attempts = last.Attempts + 1
	}
	return &answer
}

func (w *world) created(object runtime.ApplyConfiguration) {
	w.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		w.t.Fatal(err)
	}
	job := &batchv1.Job{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, job); err != nil {
		w.t.Fatal(err)
	}
	id := job.Labels[plan.RunLabel]
	for i := range w.observed.Runs {
		if w.observed.Runs[i].ID == id {
			w.observed.Runs[i].Job = job
			return
		}
	}
	w.observed.Runs = append(w.observed.Runs, plan.Run{ID: id, Job: job})
}

// record lets the latest migration Job write its record.
func (w *world) record(record contract.Record) {
	w.t.Helper()
	if len(w.observed.Runs) == 0 {
		w.t.Fatal("no migration runs")
	}
	if run := w.observed.Policy.Status.Migration; record.Finished() && record.Ruleset == "" {
		record.Ruleset, record.StartTime, record.Preserved = run.Ruleset, run.StartTime, w.held.Clone()
	}
	w.observed.Runs[len(w.observed.Runs)-1].Record = &record
}
