//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// noted is a kind whose v1beta1 has note and mode, whose v1alpha1 has legacy, and where both have
// color. v1, the stored version, lacks all of them, so that objects preserve these values in
// annotations.
type noted struct {
	group, policy string
	// run is the last one that migrate has seen.
	run string
}

// ownFields are the fields that v1 lacks.
var ownFields = map[string]string{"v1beta1": "note: {type: string}, mode: {type: string}, color: {type: string}", "v1alpha1": "legacy: {type: string}, color: {type: string}"}

func newNoted(t *testing.T, group string, versions ...string) *noted {
	t.Helper()
	k := &noted{group: group, policy: "crontabs." + group}
	define(t, group, versions...)
	changeCRD(t, k.policy, func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			var own map[string]apiextensionsv1.JSONSchemaProps
			expect.NoError(t, yaml.Unmarshal([]byte("{"+ownFields[crd.Spec.Versions[i].Name]+"}"), &own))
			maps.Copy(crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties, own)
		}
	})
	return k
}

// follow creates a policy for the kind, and waits until it converts.
func (k *noted) follow(t *testing.T, change func(*v1alpha1.ConversionPolicy)) {
	t.Helper()
	createPolicy(t, k.group, func(policy *v1alpha1.ConversionPolicy) {
		rules := policy.Spec.Converter.Declarative
		if len(getCRD(t, k.policy).Spec.Versions) == 3 {
			old := *rules.Spokes[0].DeepCopy()
			old.Version = "v1alpha1"
			rules.Spokes = append(rules.Spokes, old)
		}
		policy.Spec.Migration.Trigger = "first"
		if change != nil {
			change(policy)
		}
	})
}

// waitUntil waits until the policy is as expected.
func (k *noted) waitUntil(t *testing.T, what string, so func(*v1alpha1.ConversionPolicy) bool) {
	t.Helper()
	expect.Eventually(t, what, func() (bool, string) {
		policy := getPolicy(t, k.policy)
		return so(policy), summaryOf(policy.Status.Conditions)
	})
}

// migrate waits for the end of the next run.
func (k *noted) migrate(t *testing.T) {
	t.Helper()
	k.waitUntil(t, "a run has succeeded", func(policy *v1alpha1.ConversionPolicy) bool {
		run := policy.Status.Migration
		ended := run != nil && run.Run != k.run && run.State == v1alpha1.MigrationSucceeded
		if ended {
			k.run = run.Run
		}
		return ended
	})
}

func (k *noted) changePolicy(t *testing.T, text string) {
	t.Helper()
	patch(t, getPolicy(t, k.policy), text)
}

// accept adds acceptedLosses of v1beta1.
func (k *noted) accept(t *testing.T, fields string) {
	t.Helper()
	k.changePolicy(t, `{"spec":{"retirement":[{"version":"v1beta1","action":"Remove","after":"0s","acceptedLosses":[`+fields+`]}]}}`)
}

// allowNotes adds the field note to v1, with at most ten characters in both versions.
func (k *noted) allowNotes(t *testing.T) {
	t.Helper()
	changeCRD(t, k.policy, func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["note"] = apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: new(int64(10))}
		}
	})
}

func (k *noted) object(version, name string) *unstructured.Unstructured {
	return cronTab(k.group, version, name)
}

func (k *noted) create(t *testing.T, version, name, fields string) {
	t.Helper()
	createObject(t, k.object(version, name), fields)
}

// storedTab is an object as etcd has it.
type storedTab struct {
	APIVersion string            `json:"apiVersion"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Host       string            `json:"host"`
	Note       string            `json:"note"`
	Replicas   int64             `json:"replicas"`
	revision   int64
}

// stored returns the objects in etcd by name.
func (k *noted) stored(t *testing.T) map[string]storedTab {
	t.Helper()
	entries, _, err := storage.List(t.Context(), "/registry/"+k.group+"/crontabs/")
	expect.NoError(t, err)
	all := map[string]storedTab{}
	for _, entry := range entries {
		one := storedTab{revision: entry.ModRevision}
		expect.NoError(t, json.Unmarshal(entry.Value, &one))
		expect.Equal(t, "version at which "+one.Metadata.Name+" is stored", k.group+"/v1", one.APIVersion)
		all[one.Metadata.Name] = one
	}
	return all
}

// annotations returns the preserved data of a version in etcd, by object.
func (k *noted) annotations(t *testing.T, version string) map[string]string {
	t.Helper()
	held := map[string]string{}
	for name, one := range k.stored(t) {
		if text, there := one.Metadata.Annotations[conversion.AnnotationName(k.policy, version)]; there {
			held[name] = text
		}
	}
	return held
}

// checkStored compares the number of objects in etcd with a preserved note, and with note as data.
func (k *noted) checkStored(t *testing.T, when string, annotated, data int) {
	t.Helper()
	are, have := 0, 0
	for _, one := range k.stored(t) {
		if strings.Contains(one.Metadata.Annotations[conversion.AnnotationName(k.policy, "v1beta1")], `"/note"`) {
			are++
		}
		if one.Note != "" {
			have++
		}
	}
	expect.Equal(t, when+": objects that hold a note in annotations", annotated, are)
	expect.Equal(t, when+": objects that have a note", data, have)
}

// revision returns the revision of etcd, and writtenSince the objects written after it.
func (k *noted) revision(t *testing.T) int64 {
	t.Helper()
	_, revision, err := storage.List(t.Context(), "/registry/"+k.group+"/")
	expect.NoError(t, err)
	return revision
}

func (k *noted) writtenSince(t *testing.T, revision int64) []string {
	t.Helper()
	var list []string
	for name, one := range k.stored(t) {
		if one.revision > revision {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// waitCounted waits until status.preservedData has a complete count of these fields.
func (k *noted) waitCounted(t *testing.T, want string) {
	t.Helper()
	var seen string
	expect.Eventually(t, "preserved data is counted: "+want, func() (bool, string) {
		is := getPolicy(t, k.policy).Status
		counted := is.PreservedData
		if counted == nil {
			return false, "never counted"
		}
		var fields []string
		for _, of := range counted.Versions {
			for _, field := range of.Fields {
				fields = append(fields, fmt.Sprintf("%s: %d", field.Path, field.Objects))
			}
		}
		seen = strings.Join(fields, "; ")
		return seen == want && counted.Complete && counted.Ruleset == is.Revision, fmt.Sprintf("%s of %+v", seen, counted)
	})
}

// waitBlocked waits until v1beta1 is blocked by preserved data, with a message that has all parts.
func (k *noted) waitBlocked(t *testing.T, parts ...string) {
	t.Helper()
	k.waitUntilVersion(t, fmt.Sprintf("v1beta1 is kept by preserved data, and says %q", parts), blockedBy(v1alpha1.BlockedPreservedData, parts...))
}

// blockedBy reports that a version is blocked for a reason, with a message that has all parts.
func blockedBy(reason v1alpha1.VersionBlockReason, parts ...string) func(v1alpha1.VersionStatus) bool {
	return func(is v1alpha1.VersionStatus) bool {
		return slices.ContainsFunc(is.BlockedBy, func(block v1alpha1.VersionBlock) bool {
			says := block.Reason == reason && !is.SafeToRemove
			for _, part := range parts {
				says = says && strings.Contains(block.Message, part)
			}
			return says
		})
	}
}

// recordStatuses records every status of v1beta1 from now on, also those that last for a moment. The
// function that it returns ends that, and reports whether one of them was so.
func (k *noted) recordStatuses(t *testing.T) (ever func(so func(v1alpha1.VersionStatus) bool) bool) {
	t.Helper()
	changes, err := cluster.Watch(t.Context(), &v1alpha1.ConversionPolicyList{}, client.MatchingFields{"metadata.name": k.policy})
	expect.NoError(t, err)
	t.Cleanup(changes.Stop)
	recorded := make(chan []v1alpha1.VersionStatus, 1)
	go func() {
		var all []v1alpha1.VersionStatus
		for change := range changes.ResultChan() {
			if policy, is := change.Object.(*v1alpha1.ConversionPolicy); is {
				all = append(all, policy.Status.Versions...)
			}
		}
		recorded <- all
	}()
	return func(so func(v1alpha1.VersionStatus) bool) bool {
		changes.Stop()
		return slices.ContainsFunc(<-recorded, func(is v1alpha1.VersionStatus) bool { return is.Name == "v1beta1" && so(is) })
	}
}

func (k *noted) waitUnblocked(t *testing.T, reason v1alpha1.VersionBlockReason) {
	t.Helper()
	k.waitUntilVersion(t, fmt.Sprintf("v1beta1 is not kept by %s", reason), func(is v1alpha1.VersionStatus) bool {
		return !slices.ContainsFunc(is.BlockedBy, func(block v1alpha1.VersionBlock) bool { return block.Reason == reason })
	})
}

func (k *noted) waitUntilVersion(t *testing.T, what string, so func(v1alpha1.VersionStatus) bool) {
	t.Helper()
	expect.Eventually(t, what, func() (bool, string) {
		versions := getPolicy(t, k.policy).Status.Versions
		at := slices.IndexFunc(versions, func(is v1alpha1.VersionStatus) bool { return is.Name == "v1beta1" })
		return at >= 0 && so(versions[at]), fmt.Sprintf("%+v", versions)
	})
}

// watchRemoval returns a function with the number of objects in etcd that had preserved values of a
// version right before the manager removed it: -1 until then.
func (k *noted) watchRemoval(t *testing.T, version string) func() int {
	t.Helper()
	var left atomic.Int64
	left.Store(-1)
	setTap(t, k.group, func(r *http.Request, body string, pass func() (*http.Response, error)) (*http.Response, error) {
		if strings.Contains(r.URL.Path, "/customresourcedefinitions/") && strings.Contains(body, `"op":"remove"`) && strings.Contains(body, "/spec/versions/") {
			left.Store(int64(len(k.annotations(t, version))))
		}
		return pass()
	})
	return func() int { return int(left.Load()) }
}

// cleans reports whether a request removes preserved values from annotations.
func cleans(r *http.Request, body string) bool {
	return strings.Contains(r.URL.Path, "/crontabs/") && strings.Contains(body, "/metadata/annotations/conversion-operator.io~1")
}

// writeLate lets a client write an object right before the cleanup does, and counts the resulting
// conflicts.
func (k *noted) writeLate(t *testing.T, name, annotation string) *atomic.Int64 {
	t.Helper()
	var conflicts atomic.Int64
	var once sync.Once
	setTap(t, k.group, func(r *http.Request, body string, pass func() (*http.Response, error)) (*http.Response, error) {
		if !cleans(r, body) || !strings.HasSuffix(r.URL.Path, "/"+name) {
			return pass()
		}
		first, late := false, error(nil)
		once.Do(func() {
			first = true
			text, _ := json.Marshal(annotation) // a text can be encoded
			change := fmt.Sprintf(`{"host":"late.example.com","metadata":{"labels":{"late":"yes"},"annotations":{%q:%s}}}`, conversion.AnnotationName(k.policy, "v1beta1"), text)
			late = cluster.Patch(r.Context(), k.object("v1", name), client.RawPatch("application/merge-patch+json", []byte(change)))
		})
		if late != nil {
			return nil, late
		}
		answer, err := pass()
		if first && err == nil && answer.StatusCode == http.StatusConflict {
			conflicts.Add(1)
		}
		return answer, err
	})
	return &conflicts
}

var errDead = errors.New("the manager is dead")

// dieAfter cuts off the manager after it has removed values from a number of objects: later
// requests do not reach the API server, and the last responses do not arrive.
func (k *noted) dieAfter(t *testing.T, objects int64) func() bool {
	t.Helper()
	var done atomic.Int64
	setTap(t, k.group, func(r *http.Request, body string, pass func() (*http.Response, error)) (*http.Response, error) {
		switch {
		case !cleans(r, body) && done.Load() < objects:
			return pass()
		case !cleans(r, body) || done.Add(1) > objects:
			return nil, errDead
		}
		answer, err := pass()
		if err == nil && done.Load() >= objects {
			_ = answer.Body.Close()
			return nil, errDead
		}
		return answer, err
	})
	return func() bool { return done.Load() > objects }
}

// writing is a client that writes objects at a version.
type writing struct {
	*scenarios.Client
	version string
	// turns are the last successful writes of objects.
	turns map[string]int
}

// writeAllTheTime starts a client per version that writes objects, one after the other: the turn as a label.
// Each object has pauses, as a cleanup gives up on an object that is written continuously.
func (k *noted) writeAllTheTime(t *testing.T, versions ...string) (clients []*writing) {
	t.Helper()
	for _, version := range versions {
		w, turn := &writing{version: version, turns: map[string]int{}}, 0
		w.Client = scenarios.Repeat(t.Context(), func(ctx context.Context) error {
			turn++
			name, change := fmt.Sprint("noted-", turn%(held-2)), fmt.Sprintf(`{"metadata":{"labels":{"turn-%s":"%d"}}}`, version, turn)
			if err := cluster.Patch(ctx, k.object(version, name), client.RawPatch("application/merge-patch+json", []byte(change))); err != nil {
				return fmt.Errorf("turn %d of %s at %s: %w", turn, name, version, err)
			}
			w.turns[name] = turn
			return nil
		})
		clients = append(clients, w)
	}
	return clients
}

// checkWritten: all writes of clients are stored, and the other fields are unchanged.
func (k *noted) checkWritten(t *testing.T, clients []*writing) {
	t.Helper()
	stored := k.stored(t)
	for _, w := range clients {
		for name, turn := range w.turns {
			// A write whose response was not awaited may be one turn ahead.
			if got, err := strconv.Atoi(stored[name].Metadata.Labels["turn-"+w.version]); err != nil || got < turn {
				t.Errorf("turn %d of %s at %s is lost: it is %d, %v", turn, name, w.version, got, err)
			}
		}
	}
	for name, one := range stored {
		if strings.HasPrefix(name, "noted-") && (one.Host != "a.example.com" || one.Replicas != 1 || one.Metadata.Annotations["mine"] != "text") {
			t.Errorf("%s has lost something: %+v", name, one)
		}
	}
}
