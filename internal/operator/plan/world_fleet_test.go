// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/forecast"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// watch is what a world with fleets watches: API servers may request each revision for as long as
// they may not have seen that the CustomResourceDefinition names another.
type watch struct {
	// requested are the revisions that API servers may request, and until when; the zero time for
	// the current one.
	requested map[string]time.Time
	// sabotaged tells that the test takes something away, so that nothing need answer.
	sabotaged bool
}

// newFleetWorld has a policy without pods of its own, and fleets of these names.
func newFleetWorld(t *testing.T, fleets ...string) *world {
	t.Helper()
	w := newWorld(t, strings.Replace(policyYAML, "mode: Automatic", "mode: OnTrigger", 1))
	w.observed.Policy.Spec.Workload = nil
	w.Fleets, w.watch = map[string]*forecast.Fleet{}, &watch{requested: map[string]time.Time{}}
	for _, name := range fleets {
		w.CreateFleet(name)
	}
	return w
}

// inFleet is a world whose policy is active in the default fleet.
func inFleet(t *testing.T, others ...string) *world {
	t.Helper()
	return from(t, fmt.Sprint("in a fleet, beside ", others), func(t *testing.T) *world { return newInFleet(t, others...) })
}

func newInFleet(t *testing.T, others ...string) *world {
	t.Helper()
	w := newFleetWorld(t, others...)
	w.define(bothStoredNew)
	if named := w.named(); !strings.HasSuffix(named, ".default") {
		t.Fatalf("the CustomResourceDefinition names %q:\n%s", named, w.story())
	}
	return w
}

// move asks for another place: a fleet, or pods of the policy alone if the name is empty.
func (w *world) move(fleet string) {
	spec := &w.observed.Policy.Spec
	spec.Workload = &v1alpha1.Workload{Type: v1alpha1.WorkloadFleet, Fleet: &v1alpha1.FleetWorkload{Name: v1alpha1.FleetName(fleet)}}
	if fleet == "" {
		spec.Workload = &v1alpha1.Workload{Type: v1alpha1.WorkloadDedicated, Dedicated: &v1alpha1.ConverterPods{}}
	}
	w.observed.Policy.Generation++
}

// podOf is a pod of a fleet, or of the policy alone.
func (w *world) podOf(fleet string, number int) *observed.Pod {
	w.t.Helper()
	for i := range w.observed.Pods {
		if pod := &w.observed.Pods[i]; pod.Fleet == fleet {
			if number == 0 {
				return pod
			}
			number--
		}
	}
	w.t.Fatalf("fleet %q has fewer pods", fleet)
	return nil
}

// describeStore tells what changes in shards.
func (w *world) describeStore(s step.StoreRulesets) string {
	var changes []string
	for _, add := range s.Add {
		changes = append(changes, "add "+add.Hash+" to "+add.ConfigMap)
	}
	for _, remove := range s.Remove {
		changes = append(changes, "remove "+remove.Hash+" from "+remove.ConfigMap)
	}
	return strings.Join(changes, ", ")
}

// named is the revision that the CustomResourceDefinition names; empty if it is none of ours.
func (w *world) named() string {
	crd := w.observed.CRD
	if crd == nil || crds.Strategy(crd) != "Webhook" {
		return ""
	}
	service := observed.WebhookService(crd)
	if service == nil || service.Path == nil || *service.Port != workload.ServicePort {
		return "" // an image has a port of its own
	}
	if fleet := names.FleetOf(service.Name); fleet != "" || service.Name == names.Child(crontabs) {
		return names.RevisionIn(path.Base(*service.Path), fleet)
	}
	return ""
}

// expectAnswers looks, at any time, whether each revision that an API server may request is stored,
// and whether every ready pod that it may reach has it.
func (w *world) expectAnswers() {
	w.t.Helper()
	watched, now := w.watch, w.named()
	for requested, until := range watched.requested {
		if until.IsZero() && requested != now {
			watched.requested[requested] = w.observed.Now.Add(w.observed.Settings.PropagationDelay)
		}
	}
	maps.DeleteFunc(watched.requested, func(_ string, until time.Time) bool { return !until.IsZero() && !w.observed.Now.Before(until) })
	if now != "" && crds.ConversionIsBy(w.observed.CRD, w.observed.CRD.Spec.Conversion, names.ManagedBy) {
		watched.requested[now] = time.Time{}
	}
	if watched.sabotaged {
		return
	}
	for requested := range watched.requested {
		fleet, ready := names.RevisionOf(requested).Fleet, 0
		for _, pod := range w.observed.Pods {
			if pod.Fleet != fleet || !pod.Ready || pod.Image {
				continue
			}
			if ready++; !slices.Contains(pod.Revisions, requested) {
				w.t.Errorf("API servers may request %s, and the ready pod %s does not have it", requested, pod.Name)
			}
		}
		if ready == 0 {
			w.t.Errorf("API servers may request %s, and no pod there is ready", requested)
		}
		expect.Equal(w.t, "what API servers may request is stored: "+requested, true, slices.Contains(w.StoredRulesets(fleet), requested))
	}
}

// authorities are those by which the pods of a place are verified.
func (w *world) authorities(fleet string) []byte {
	secret := w.observed.OwnCertificate
	switch {
	case fleet != "" && w.Fleets[fleet] == nil:
		w.t.Errorf("fleet %q does not exist, and is to be called", fleet)
		return nil
	case fleet != "":
		secret = w.Fleets[fleet].Certificate
	case observed.FleetOf(w.observed.Policy) == "":
		secret = w.observed.Certificate
	}
	if secret == nil {
		return nil
	}
	return secret.Data[observed.CAKey]
}

// expectSwitches looks at what the CustomResourceDefinition is to name: every ready pod of that
// place has it and has proven it, unless spec.conversion is repaired or only caBundle changes, and
// caBundle has the authorities of that place.
func (w *world) expectSwitches(decided plan.Plan) {
	w.t.Helper()
	if w.Fleets == nil {
		return
	}
	for _, s := range decided.Steps {
		to, is := s.(step.SwitchCRD)
		if !is {
			continue
		}
		client := to.Conversion.Webhook.ClientConfig
		fleet := names.FleetOf(client.Service.Name)
		if !bytes.Equal(client.CABundle, w.authorities(fleet)) || len(client.CABundle) == 0 {
			w.t.Errorf("the CustomResourceDefinition is pointed at fleet %q with other authorities", fleet)
		}
		named := names.RevisionIn(path.Base(*client.Service.Path), fleet)
		repairs := slices.Contains(kinds(decided.Steps), "RecordDrift")
		for _, pod := range w.observed.Pods {
			if pod.Fleet != fleet || !pod.Ready || pod.Image || repairs || named == w.named() || w.watch.sabotaged {
				continue
			}
			if !slices.Contains(pod.Revisions, named) || pod.Proof == nil || pod.Proof.Reason != "" {
				w.t.Errorf("the CustomResourceDefinition is to name %s, and pod %s has %v, with the proof %+v", named, pod.Name, pod.Revisions, pod.Proof)
			}
		}
	}
}

// expectWebhooks looks at the webhook configuration: names are unique, and each webhook calls the
// pods of its revision, and trusts their authorities.
func (w *world) expectWebhooks() {
	w.t.Helper()
	if w.Fleets == nil {
		return
	}
	seen := map[string]bool{}
	for _, webhook := range w.observed.Admission.Webhooks {
		expect.Equal(w.t, "two webhooks have the name "+webhook.Name, false, seen[webhook.Name])
		seen[webhook.Name] = true
		service := webhook.ClientConfig.Service
		fleet := names.FleetOf(service.Name)
		if called := names.RevisionIn(path.Base(*service.Path), fleet); !strings.HasPrefix(webhook.Name, called+".") {
			w.t.Errorf("webhook %s calls %s", webhook.Name, called)
		}
		expect.Equal(w.t, "authorities that webhook "+webhook.Name+" trusts", w.authorities(fleet), webhook.ClientConfig.CABundle)
	}
}

// callFleet points a webhook at the Service of a fleet, and callPath at a path.
func callFleet(fleet string) func(*apiextensionsv1.WebhookClientConfig) {
	return func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Name = names.Fleet(fleet) }
}

func callPath(to string) func(*apiextensionsv1.WebhookClientConfig) {
	return func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Path = &to }
}
